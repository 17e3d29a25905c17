// Hosts with UEC send flows in turn, acknowledge what comes, and send again what was lost.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"
#include "uec.hpp"

namespace orrery::network {
namespace {

constexpr std::uint32_t control_per_data = 10;
/// A receiver that has all of a flow forgets it after so many time-outs without a packet of it.
constexpr std::int64_t time_outs_to_forget = 10;

}  // namespace

UecTransport::UecTransport(const NodeServices& services, const UecRun& run)
    : services_(services), run_(run), nics_(services.ports.num_host_ports()) {}

UecSender* UecTransport::sender_of(std::uint32_t host, std::uint32_t flow) {
  const auto found = senders_.find(flow_key(host, flow));
  return found == senders_.end() ? nullptr : found->second.get();
}

void UecTransport::send(const FlowRequest& request) {
  const Port& out = services_.hops.first(request.id, request.ports);
  auto sender = std::make_unique<UecSender>(run_, request.id, PortOfFlow{out.number, out.rate}, request.bytes,
                                            services_.events.now());
  UecSender& it = *sender;
  senders_.emplace(flow_key(request.id.source, request.id.number), std::move(sender));
  activate(it);
}

/// Lets a flow that may send wait for its turn.
void UecTransport::activate(UecSender& sender) {
  if (!sender.may_send() || std::exchange(sender.waits, true)) return;
  Port& port = services_.ports.at(sender.flow().source, sender.port());
  nic(port).active.push_back(sender.flow().number);
  services_.ports.kick(port);
}

bool UecTransport::has_work(const Port& port) const {
  const Nic& there = nics_[services_.ports.host_port_of(port)];
  return !there.control.empty() || !there.active.empty();
}

/// Returns ten control packets for each data packet, in turn with packets that pass through the host.
std::uint32_t UecTransport::next(Port& port) {
  Nic& there = nic(port);
  if (!port.queue.empty() && std::exchange(there.passes_next, false)) return services_.ports.dequeue(port);
  there.passes_next = true;
  const bool has_control = !there.control.empty();
  if (has_control && !there.active.empty()) {
    there.turn = (there.turn + 1) % (control_per_data + 1);
    if (there.turn == 0)
      if (const std::uint32_t slot = next_data(port); slot != no_slot) return slot;
  }
  if (has_control) return there.control.pop(services_.packets);
  if (const std::uint32_t slot = next_data(port); slot != no_slot) return slot;
  return port.queue.empty() ? no_slot : services_.ports.dequeue(port);
}

/// Returns a packet of the next flow that may send; `no_slot` if there is none.
std::uint32_t UecTransport::next_data(Port& port) {
  auto& active = nic(port).active;
  while (!active.empty()) {
    UecSender* const sender = sender_of(port.node, active.front());
    const std::size_t num_active = active.size();
    active.pop_front();
    if (sender == nullptr) continue;
    sender->waits = false;
    if (!sender->may_send()) continue;
    const UecSender::Next next = sender->send(services_.events.now(), num_active);
    if (sender->may_send()) {
      sender->waits = true;
      active.push_back(sender->flow().number);
    }
    arm(*sender, sender->retransmission, retransmission);
    return put(*sender, next);
  }
  return no_slot;
}

/// Returns the slot of a data packet. Its ports hold the entropy, and bits that belong to the flow.
std::uint32_t UecTransport::put(const UecSender& sender, const UecSender::Next& next) {
  const FlowId& flow = sender.flow();
  const auto own = static_cast<std::uint32_t>(mix(run_.rules.seed, flow_key(flow.source, flow.number)));
  Packet packet;
  packet.source = flow.source;
  packet.destination = flow.destination;
  packet.ports = (own & 0xffff0000U) | next.entropy;
  packet.flow = flow.number;
  packet.size = next.size;
  packet.sequence = static_cast<std::uint64_t>(next.pull_target);
  packet.stamp = services_.events.now();
  packet.number = next.number;
  packet.flags = next.flags;
  packet.is_last = next.number + 1 == sender.num_packets() && (next.flags & uec_flags::probe) == 0;
  return services_.packets.put(packet);
}

/// Sends an event for the time at which a timer is due, unless one comes earlier.
void UecTransport::arm(UecSender& sender, UecTimer& timer, Timer which) {
  if (which == retransmission && timer.pending == Time::max()) timer.due = sender.overdue();
  if (timer.due >= timer.pending) return;
  const std::uint32_t host = sender.flow().source;
  pdes::Event event = services_.events.make(host, host, timer.due);
  event.kind = NodeEvents::flow_timer;
  event.reserved = which;
  event.node = sender.flow().number;
  event.detail = ++timer.number;
  timer.pending = timer.due;
  services_.events.send_here(event);
}

void UecTransport::expire(const pdes::Event& event) {
  const std::uint32_t host = services_.events.node_of(event);
  if (event.reserved == pulling) return pull(services_.ports.at(host, event.node));
  UecSender* const sender = sender_of(host, event.node);
  if (sender == nullptr) return;
  UecTimer& timer = event.reserved == probing ? sender->probing : sender->retransmission;
  if (timer.number != event.detail) return;
  timer.pending = Time::max();
  services_.hops.require_way(sender->flow());
  if (event.reserved == retransmission) return time_out(*sender);
  if (timer.due <= services_.events.now()) send_probe(*sender);
  arm(*sender, timer, probing);
}

void UecTransport::time_out(UecSender& sender) {
  if (sender.time_out(services_.events.now())) {
    if (sender.wants_credit(services_.events.now())) send_request(sender);
    activate(sender);
  }
  arm(sender, sender.retransmission, retransmission);
}

void UecTransport::send_probe(UecSender& sender) { send_control(put(sender, sender.probe(services_.events.now()))); }

/// Asks the receiver for credit, because the credit that it gave may be lost.
void UecTransport::send_request(UecSender& sender) {
  UecSender::Next next;
  next.size = run_.rules.acknowledgement;
  next.pull_target = sender.pull_target(nic(services_.ports.at(sender.flow().source, sender.port())).active.size());
  const std::uint32_t slot = put(sender, next);
  services_.packets[slot].kind = Packet::Kind::request;
  services_.packets[slot].is_last = false;
  send_control(slot);
}

/// Puts a packet of a host before the data of its flows.
void UecTransport::send_control(std::uint32_t slot) {
  const Packet& packet = services_.packets[slot];
  Port* const out = services_.hops.by_flow(packet.source, packet);
  if (out == nullptr) return services_.packets.free(slot);
  nic(*out).control.push(services_.packets, slot);
  services_.ports.kick(*out);
}

/// Sends a packet back to its source.
void UecTransport::answer(std::uint32_t slot) {
  Packet& packet = services_.packets[slot];
  std::swap(packet.source, packet.destination);
  packet.size = run_.rules.acknowledgement;
  send_control(slot);
}

void UecTransport::receive(Port& in, std::uint32_t slot) {
  const Packet::Kind kind = services_.packets[slot].kind;
  if (kind == Packet::Kind::data || kind == Packet::Kind::request) return receive_data(in, slot);
  receive_control(slot);
}

UecSink& UecTransport::sink_of(const Port& in, const Packet& packet) {
  const FlowId flow{packet.source, packet.destination, packet.flow};
  return sinks_.try_emplace(flow_key(packet.source, packet.flow), flow, in.number).first->second;
}

void UecTransport::receive_data(Port& in, std::uint32_t slot) {
  Packet& packet = services_.packets[slot];
  UecSink& sink = sink_of(in, packet);
  sink.notes.last_came = services_.events.now();
  if (packet.kind == Packet::Kind::request) {
    take_target(sink, static_cast<std::int32_t>(packet.sequence));
    begin_pulling(sink);
    return services_.packets.free(slot);
  }
  if ((packet.flags & uec_flags::trimmed) != 0) return receive_trimmed(sink, slot);
  if ((packet.flags & uec_flags::probe) != 0) {
    sink.acknowledge(packet, false);
    return answer(slot);
  }
  take_target(sink, static_cast<std::int32_t>(packet.sequence));
  const bool was_over = sink.is_over();
  bool is_from_it = false;
  const bool is_due = sink.take(services_.packets[slot], is_from_it);
  if (is_due) {
    sink.acknowledge(services_.packets[slot], is_from_it);
    answer(slot);
  } else {
    services_.packets.free(slot);
  }
  if (sink.is_over() && !was_over) end(sink, in);
}

/// Lets the sender know at once which packet it is to send again.
void UecTransport::receive_trimmed(UecSink& sink, std::uint32_t slot) {
  Packet& packet = services_.packets[slot];
  if (sink.has(packet.number)) {
    packet.is_marked = false;
    sink.acknowledge(packet, false);
    return answer(slot);
  }
  const auto target = static_cast<std::int32_t>(packet.sequence);
  packet.kind = Packet::Kind::negative_acknowledgement;
  packet.is_last = false;
  answer(slot);
  take_target(sink, target);
  begin_pulling(sink);
}

/// Tells the user that all of a flow has come. The sink stays for a while, because the sender may not know that.
void UecTransport::end(UecSink& sink, Port& in) {
  const FlowId flow = sink.flow();
  const Time kept = run_.figures.time_out * time_outs_to_forget;
  auto& over = nic(in).over;
  over.emplace_back(services_.events.now() + kept, flow_key(flow.source, flow.number));
  while (over.front().first < services_.events.now()) {
    const std::uint64_t key = over.front().second;
    over.pop_front();
    const Time until = sinks_.at(key).notes.last_came + kept;
    if (until < services_.events.now())
      sinks_.erase(key);
    else
      over.emplace_back(until, key);
  }
  services_.user.received(flow);
}

void UecTransport::receive_control(std::uint32_t slot) {
  const Packet packet = services_.packets[slot];
  services_.packets.free(slot);
  UecSender* const sender = sender_of(packet.destination, packet.flow);
  if (sender == nullptr) return;
  switch (packet.kind) {
    case Packet::Kind::acknowledgement:
      sender->acknowledge(packet, services_.events.now());
      break;
    case Packet::Kind::negative_acknowledgement:
      sender->reject(packet, services_.events.now());
      break;
    default:
      sender->grant(packet);
  }
  if (sender->is_over()) return end(*sender);
  arm(*sender, sender->probing, probing);
  activate(*sender);
}

void UecTransport::end(UecSender& sender) {
  const FlowId flow = sender.flow();
  senders_.erase(flow_key(flow.source, flow.number));
  services_.user.acknowledged(flow);
}

std::size_t UecTransport::num_waiting() const {
  std::size_t sum = 0;
  for (const Nic& nic : nics_) sum += nic.control.size;
  return sum;
}

}  // namespace orrery::network
