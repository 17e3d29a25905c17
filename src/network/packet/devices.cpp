#include "devices.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "fast_forward.hpp"
#include "orrery/base/error.hpp"
#include "switch_buffers.hpp"
#include "uec.hpp"

namespace orrery::network {

PacketDevices::PacketDevices(const System& system, const Part& part, PacketUser& user)
    : system_(system), part_(part), user_(user) {
  const PacketGraph& graph = system.graph;
  const SwitchBuffers buffers(graph, system.rules);
  for (std::uint32_t node = 0; node < graph.num_nodes(); ++node) add_ports(node, buffers);
  if (part.recording != PacketRecording{}) recorder_ = std::make_unique<PacketRecorder>(part.recording, ports_.size());
  if (system.rules.transport == PacketTransport::uec) uec_ = std::make_unique<UecTransport>(*this);
  if (system.rules.uses_credits) credits_ = std::make_unique<LinkCredits>(graph, system.rules);
  if (FastForward::is_possible(system, part)) fast_forward_ = std::make_unique<FastForward>(*this);
}

PacketDevices::~PacketDevices() = default;

void PacketDevices::add_ports(std::uint32_t node, const SwitchBuffers& buffers) {
  const PacketGraph& graph = system_.graph;
  const PacketRules& rules = system_.rules;
  NodeState& state = nodes_.emplace_back();
  state.first_port = ports_.size();
  state.first_nic = nics_.size();
  state.shared_size = buffers.shared_size(node);
  for (const PacketGraph::Port& end : graph.ports(node)) {
    const PacketGraph::Way out = graph.way_of(end);
    Port& port = ports_.emplace_back();
    port.node = node;
    port.number = static_cast<std::uint32_t>(ports_.size() - 1 - state.first_port);
    port.peer = {end.peer, end.peer_port};
    port.rate = out.rate;
    port.delay = out.delay;
    port.ingress.headroom_size = buffers.headroom(end);
    port.ingress.shift = buffers.share_shift(end);
    if (graph.node(node).is_host) {
      nics_.emplace_back();
    } else if (const auto found = rules.marks.find(out.rate); found != rules.marks.end()) {
      port.marking = {.thresholds = found->second, .is_on = true};
    }
  }
}

void PacketDevices::start() {
  for (const LinkFailure& failure : system_.failures) {
    if (failure.time == Time::zero()) continue;
    const PacketGraph::Link& link = system_.graph.links()[failure.link];
    for (const std::uint32_t node : {link.a, link.b}) {
      if (!is_here(node)) continue;
      pdes::Event failed = event(node, node, failure.time);
      failed.kind = link_failure;
      failed.node = failure.link;
      part_.kernel.send(part_.here, failed);
    }
  }
}

pdes::Event PacketDevices::event(std::uint32_t from, std::uint32_t to, Time time) {
  return pdes::Event::make(time, pdes::Stage::server, LpId(part_.first_process.value() + from),
                           nodes_[from].num_events++, LpId(part_.first_process.value() + to));
}

void PacketDevices::serve(const pdes::Event& event) {
  if (fast_forward_) fast_forward_->prepare(event);
  handle(event);
}

void PacketDevices::handle(const pdes::Event& event) {
  const std::uint32_t node = event.target.value() - part_.first_process.value();
  if (event.kind >= first_kind_of_user) return user_.wake(event);
  switch (event.kind) {
    case arrival:
      return arrive(node, event.reserved, event.node);
    case transmission_end: {
      Port& ended = port(node, event.reserved);
      ended.end_is_due = false;
      return kick(ended);
    }
    case wake: {
      Port& waiting = port(node, event.reserved);
      Nic& there = nic(waiting);
      if (there.wake != event.detail) return;
      there.wakes_at = Time::max();
      return kick(waiting);
    }
    case timer:
      return expire(event);
    case link_failure:
      for (std::uint32_t p = 0; p < system_.graph.ports(node).size(); ++p)
        if (system_.graph.ports(node)[p].link == event.node) fail_link(port(node, p));
      return;
    case uec_timer:
      return uec_->expire(event);
    case credit:
      return take_credit(event);
    case going_on:
      if (fast_forward_) fast_forward_->go_on(event);
      return;
    default:
      return user_.told_acknowledged({static_cast<std::uint32_t>(event.detail), node, event.node});
  }
}

void PacketDevices::settle() {
  if (fast_forward_) fast_forward_->settle();
}

bool PacketDevices::is_kept(const pdes::Event& event) { return fast_forward_->keeps(event); }

void PacketDevices::foresee(const pdes::Event& event) const {
  if (event.kind != arrival) return;
  __builtin_prefetch(&packets_[event.node]);
  const std::uint32_t node = event.target.value() - part_.first_process.value();
  __builtin_prefetch(&ports_[nodes_[node].first_port + event.reserved]);
}

void PacketDevices::unpack(pdes::Event& event, std::span<const std::byte> bytes) {
  if (event.kind == timer) return unpack_timer(event, bytes);
  event.node = put_packet(bytes);
}

/// Keeps a packet that `hand_over` or `bytes_of` has made bytes of. Returns its slot.
std::uint32_t PacketDevices::put_packet(std::span<const std::byte> bytes) {
  Packet packet;
  ensure(bytes.size() >= sizeof packet, "a packet of wrong size");
  std::memcpy(&packet, bytes.data(), sizeof packet);
  if (packet.telemetry != no_slot) {
    Telemetry telemetry;
    ensure(bytes.size() == sizeof packet + sizeof telemetry, "a packet without its telemetry");
    std::memcpy(&telemetry, bytes.data() + sizeof packet, sizeof telemetry);
    packet.telemetry = telemetry_.put(telemetry);
  }
  return packets_.put(packet);
}

/// Begins the next transmissions of a port if it is free: one, or all that take less than half a tick and those up to
/// the first that takes longer.
void PacketDevices::kick(Port& port) {
  std::uint64_t num_before = 0;
  do {
    num_before = port.done.packets;
    begin_next(port);
  } while (port.done.packets != num_before && port.free == now());
}

void PacketDevices::begin_next(Port& port) {
  if (port.end_is_due) return;
  if (now() < port.free) {
    if (has_work(port)) expect_end(port);
    return;
  }
  if (!port.frames.empty()) return transmit(port, port.frames.pop(packets_));
  if (is_host(port)) return uec_ ? uec_->serve_nic(port) : serve_nic(port);
  if (port.is_paused || !has_next(port, port.queue)) return;
  const std::uint32_t slot = dequeue(port);
  if (credits_) return forward_on_credit(port, slot);
  forward(port, slot);
}

/// Returns whether the port may have something to send when it is free.
bool PacketDevices::has_work(Port& port) {
  if (!port.frames.empty() || !port.queue.empty()) return true;
  if (!is_host(port)) return false;
  const Nic& there = nic(port);
  if (uec_) return uec_->has_work(port);
  return there.num_unsent > 0 || !there.acknowledgements.empty();
}

void PacketDevices::expect_end(Port& port) {
  pdes::Event end = event(port.node, port.node, port.free);
  end.kind = transmission_end;
  end.reserved = static_cast<std::uint16_t>(port.number);
  send_on(part_.here, end);
  port.end_is_due = true;
}

void PacketDevices::transmit(Port& port, std::uint32_t slot) {
  if (credits_) spend_credit(port, packets_[slot]);
  const std::uint32_t size = packets_[slot].size;
  const Time takes = port.takes(size, system_.rules.tick);
  port.free = now() + takes;
  ++port.done.packets;
  port.done.bytes += size;
  port.done.busy += takes;
  if (recorder_) recorder_->transmit(index_of(port), packets_[slot], now(), port.free);
  // Without an event for its end, what takes less than half a tick is over at once (kick). The packet is at the other
  // end later than now, as RelayDelays promises.
  const bool is_over = takes == Time::zero() && !part_.in_scheduling_order;
  if (port.free < Time::max() && !is_over && (part_.in_scheduling_order || has_work(port))) expect_end(port);
  const Time there = port.free + port.delay;
  hand_over(port, slot, part_.in_scheduling_order ? there : std::max(there, now() + least_link_delay));
}

/// Lets a packet be at the other end of the link at the time `there`.
void PacketDevices::hand_over(Port& port, std::uint32_t slot, Time there) {
  if (there == Time::max())
    throw Error(ErrorCode::bad_input,
                fmt::format("a packet from node {} to node {} would come after the range of time (106 days); expected "
                            "fewer bytes or faster links",
                            port.node, port.peer.node));
  const Packet& packet = packets_[slot];
  pdes::Event onward = event(port.node, port.peer.node, there);
  onward.kind = arrival;
  onward.node = slot;
  onward.reserved = static_cast<std::uint16_t>(port.peer.port);
  const bool tells_receiver = system_.rules.completion == PacketCompletion::acknowledged && packet.is_last &&
                              packet.kind == Packet::Kind::acknowledgement && port.peer.node == packet.destination &&
                              !part_.in_scheduling_order;
  if (tells_receiver) {
    pdes::Event told = event(port.node, packet.source, there);
    told.kind = notice;
    told.node = packet.flow;
    told.detail = packet.destination;
    send_on(part_.of_node[packet.source], told);
  }
  const Rank to = part_.of_node[port.peer.node];
  if (to == part_.here) return send_on(to, onward);
  std::byte bytes[sizeof(Packet) + sizeof(Telemetry)];
  std::size_t size = sizeof packet;
  std::memcpy(bytes, &packet, sizeof packet);
  if (packet.telemetry != no_slot) {
    std::memcpy(bytes + size, &telemetry_[packet.telemetry], sizeof(Telemetry));
    size += sizeof(Telemetry);
  }
  send_on(to, onward, std::span(bytes, size));
  free_packet(slot);
}

void PacketDevices::arrive(std::uint32_t node, std::uint32_t number, std::uint32_t slot) {
  Port& in = port(node, number);
  Packet& packet = packets_[slot];
  if (in.is_down) return drop(in, slot);
  if (packet.kind == Packet::Kind::pause || packet.kind == Packet::Kind::resume) {
    in.is_paused = packet.kind == Packet::Kind::pause;
    in.done.pauses += in.is_paused ? 1 : 0;
    if (recorder_) recorder_->pause(index_of(in), now(), in.is_paused);
    free_packet(slot);
    if (!in.is_paused) kick(in);
    return;
  }
  if (packet.destination == node && uec_) return uec_->receive(in, slot);
  if (credits_ && packet.destination == node) return_credit(in, packet);
  if (packet.destination == node) return packet.is_data() ? receive_data(slot) : receive_acknowledgement(slot);
  packet.port = static_cast<std::uint16_t>(number);
  Port* const out = system_.rules.chooses_hops() ? next_hop(node, packet) : next_port(node, packet);
  if (credits_ && out == nullptr) return_credit(in, packet);
  if (out == nullptr) return drop(in, slot);
  if (uec_) return uec_->admit(*out, slot);
  if (credits_) hold(in, packet);
  if (!is_host(in) && !credits_) return admit(in, *out, slot);
  enqueue(*out, slot);
  kick(*out);
  out->done.most_waiting = std::max(out->done.most_waiting, out->queue.size);
}

/// Puts a packet into the queue of a port.
void PacketDevices::enqueue(Port& port, std::uint32_t slot) {
  if (fast_forward_) fast_forward_->note_packet(index_of(port), packets_[slot]);
  port.queue.push(packets_, slot);
  port.done.deepest_queue = std::max(port.done.deepest_queue, port.queue.bytes);
  port.done.queueing -= now();
  if (recorder_) recorder_->enqueue(index_of(port), now(), port.queue.bytes);
}

std::uint32_t PacketDevices::dequeue(Port& port) {
  port.done.queueing += now();
  const std::uint32_t slot = port.queue.pop(packets_);
  if (recorder_) recorder_->dequeue(index_of(port), packets_[slot], now(), port.queue.bytes);
  if (credits_) release(port.node, packets_[slot]);
  return slot;
}

Port* PacketDevices::next_port(std::uint32_t node, const Packet& packet) {
  const std::uint16_t number = system_.router.port(node, {packet.source, packet.destination, packet.ports}, now());
  return number == PacketRouter::no_way ? nullptr : &port(node, number);
}

/// Returns the port by which a host sends a message.
Port& PacketDevices::first_port(const FlowRequest& request) {
  const PacketRouter::FlowKey key{request.id.source, request.id.destination, request.ports};
  const std::uint16_t number = system_.router.port(request.id.source, key, now());
  if (number == PacketRouter::no_way) require_way(request.id);
  return port(request.id.source, number);
}

/// Throws Error (bad_input) if failures have left no way between the hosts of a flow, which would time out for ever.
void PacketDevices::require_way(const FlowId& flow) const {
  const auto leads = [&](std::uint32_t from, std::uint32_t to) {
    return !system_.router.ports(from, to, now()).empty();
  };
  if (leads(flow.source, flow.destination) && leads(flow.destination, flow.source)) return;
  throw Error(
      ErrorCode::bad_input,
      fmt::format("host {} sends a message to host {}, and failed links have left no way between them at {} ns; "
                  "expected a way between hosts that talk to each other",
                  flow.source, flow.destination, now().ps() / 1000));
}

/// Drops what waits for a link that fails. Its bytes stay counted in the buffer, as in ns-3.
void PacketDevices::fail_link(Port& port) {
  port.is_down = true;
  while (!port.frames.empty()) free_packet(port.frames.pop(packets_));
  while (!port.queue.empty()) drop(port, dequeue(port));
  if (recorder_ && port.is_paused) recorder_->pause(index_of(port), now(), false);
  if (credits_) kick(port);
}

void PacketDevices::drop(Port& port, std::uint32_t slot) {
  ++port.done.drops;
  free_packet(slot);
}

void PacketDevices::free_packet(std::uint32_t slot) {
  if (packets_[slot].telemetry != no_slot) telemetry_.free(packets_[slot].telemetry);
  packets_.free(slot);
}

void PacketDevices::collect(const std::function<std::uint32_t(const Port&)>& number_of, PacketRecords& records) const {
  if (!recorder_) return;
  for_each_port([&](const Port& port) { recorder_->collect(index_of(port), number_of(port), records); });
}

std::string PacketDevices::find_leak() const {
  std::size_t waiting = 0;
  bool has_lost = false;
  for (const Port& port : ports_) {
    has_lost = has_lost || port.is_down;
    const auto count = [&](const PacketQueue& queue) {
      for (std::uint32_t slot = queue.first; slot != no_slot; slot = packets_[slot].next) ++waiting;
    };
    count(port.frames);
    count(port.queue);
  }
  for (const Nic& there : nics_)
    for (std::uint32_t slot = there.acknowledgements.first; slot != no_slot; slot = packets_[slot].next) ++waiting;
  if (packets_.in_use() != waiting)
    return fmt::format("{} packets are neither at a node nor on a link", packets_.in_use() - waiting);
  if (has_lost) return {};
  if (credits_) return find_credit_leak();
  if (waiting > 0) return {};
  for (const Port& port : ports_)
    if (port.ingress.bytes != 0 || port.ingress.headroom != 0)
      return fmt::format("port {} of node {} counts {} bytes that have left", port.number, port.node,
                         port.ingress.bytes + port.ingress.headroom);
  for (const NodeState& state : nodes_)
    if (state.shared != 0) return fmt::format("a buffer counts {} bytes that have left", state.shared);
  return {};
}

}  // namespace orrery::network
