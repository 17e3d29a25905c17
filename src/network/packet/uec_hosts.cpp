// What hosts do with UEC: they send flows in turn, acknowledge what comes, and send again what was lost.
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

UecTransport::UecTransport(PacketDevices& devices)
    : devices_(devices),
      run_(devices.system_.graph, devices.system_.router, devices.system_.rules),
      nics_(devices.nics_.size()),
      services_(devices.ports_.size()) {
  for (Port& port : devices.ports_) {
    if (devices.is_host(port) || port.marking.is_on) continue;
    const bool to_host = devices.system_.graph.node(port.peer.node).is_host;
    port.marking = {.thresholds = run_.figures.marks, .is_on = !(run_.by_credit && to_host)};
  }
}

UecTransport::~UecTransport() = default;

Port& UecTransport::port_of(std::uint32_t host, std::uint32_t number) { return devices_.port(host, number); }

UecSender* UecTransport::sender_of(std::uint32_t host, std::uint32_t flow) {
  const auto found = senders_.find(flow_key(host, flow));
  return found == senders_.end() ? nullptr : found->second.get();
}

void UecTransport::send(const FlowRequest& request) {
  const Port& out = devices_.first_port(request);
  auto sender =
      std::make_unique<UecSender>(run_, request.id, PortOfFlow{out.number, out.rate}, request.bytes, devices_.now());
  UecSender& it = *sender;
  senders_.emplace(flow_key(request.id.source, request.id.number), std::move(sender));
  activate(it);
}

/// Lets a flow that may send wait for its turn.
void UecTransport::activate(UecSender& sender) {
  if (!sender.may_send() || std::exchange(sender.waits, true)) return;
  Port& port = port_of(sender.flow().source, sender.port());
  nic(port).active.push_back(sender.flow().number);
  devices_.kick(port);
}

bool UecTransport::has_work(const Port& port) const {
  const std::size_t number = devices_.nic_of(port);
  return !devices_.nics_[number].acknowledgements.empty() || !nics_[number].active.empty();
}

/// Sends the next packet of a host: control packets ten times for each data packet, in turn with packets that pass
/// through the host.
void UecTransport::serve_nic(Port& port) {
  orrery::network::Nic& shared = devices_.nics_[devices_.nic_of(port)];
  Nic& there = nic(port);
  if (!port.queue.empty() && std::exchange(shared.passes_next, false))
    return devices_.transmit(port, devices_.dequeue(port));
  shared.passes_next = true;
  const bool has_control = !shared.acknowledgements.empty();
  if (has_control && !there.active.empty()) {
    there.turn = (there.turn + 1) % (control_per_data + 1);
    if (there.turn == 0 && send_next_data(port)) return;
  }
  if (has_control) return devices_.transmit(port, shared.acknowledgements.pop(devices_.packets_));
  if (send_next_data(port)) return;
  if (!port.queue.empty()) devices_.transmit(port, devices_.dequeue(port));
}

/// Sends a packet of the next flow that may send. Returns whether there was one.
bool UecTransport::send_next_data(Port& port) {
  auto& active = nic(port).active;
  while (!active.empty()) {
    UecSender* const sender = sender_of(port.node, active.front());
    const std::size_t num_active = active.size();
    active.pop_front();
    if (sender == nullptr) continue;
    sender->waits = false;
    if (!sender->may_send()) continue;
    const UecSender::Next next = sender->send(devices_.now(), num_active);
    if (sender->may_send()) {
      sender->waits = true;
      active.push_back(sender->flow().number);
    }
    arm(*sender, sender->retransmission, retransmission);
    devices_.transmit(port, put(*sender, next));
    return true;
  }
  return false;
}

/// Returns the slot of a data packet. Its ports have the entropy, beside what is the flow's own.
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
  packet.stamp = devices_.now();
  packet.number = next.number;
  packet.flags = next.flags;
  packet.is_last = next.number + 1 == sender.num_packets() && (next.flags & uec_flags::probe) == 0;
  return devices_.packets_.put(packet);
}

/// Sees to it that an event comes when a timer is due.
void UecTransport::arm(UecSender& sender, UecTimer& timer, Timer which) {
  if (which == retransmission && timer.pending == Time::max()) timer.due = sender.overdue();
  if (timer.due >= timer.pending) return;
  const std::uint32_t host = sender.flow().source;
  pdes::Event event = devices_.event(host, host, timer.due);
  event.kind = PacketDevices::uec_timer;
  event.reserved = which;
  event.node = sender.flow().number;
  event.detail = ++timer.number;
  timer.pending = timer.due;
  devices_.part_.kernel.send(devices_.part_.here, event);
}

void UecTransport::expire(const pdes::Event& event) {
  const std::uint32_t host = event.target.value() - devices_.part_.first_process.value();
  if (event.reserved == pulling) return pull(port_of(host, event.node));
  UecSender* const sender = sender_of(host, event.node);
  if (sender == nullptr) return;
  UecTimer& timer = event.reserved == probing ? sender->probing : sender->retransmission;
  if (timer.number != event.detail) return;
  timer.pending = Time::max();
  devices_.require_way(sender->flow());
  if (event.reserved == retransmission) return time_out(*sender);
  if (timer.due <= devices_.now()) send_probe(*sender);
  arm(*sender, timer, probing);
}

void UecTransport::time_out(UecSender& sender) {
  if (sender.time_out(devices_.now())) {
    if (sender.wants_credit(devices_.now())) send_request(sender);
    activate(sender);
  }
  arm(sender, sender.retransmission, retransmission);
}

void UecTransport::send_probe(UecSender& sender) { send_control(put(sender, sender.probe(devices_.now()))); }

/// Asks the receiver for credit, because what it gave may be lost.
void UecTransport::send_request(UecSender& sender) {
  UecSender::Next next;
  next.size = run_.rules.acknowledgement;
  next.pull_target = sender.pull_target(nic(port_of(sender.flow().source, sender.port())).active.size());
  const std::uint32_t slot = put(sender, next);
  devices_.packets_[slot].kind = Packet::Kind::request;
  devices_.packets_[slot].is_last = false;
  send_control(slot);
}

/// Puts a packet of a host before the data of its flows.
void UecTransport::send_control(std::uint32_t slot) {
  const Packet& packet = devices_.packets_[slot];
  Port* const out = devices_.next_port(packet.source, packet);
  if (out == nullptr) return devices_.free_packet(slot);
  devices_.nics_[devices_.nic_of(*out)].acknowledgements.push(devices_.packets_, slot);
  devices_.kick(*out);
}

/// Sends a packet back to where it came from.
void UecTransport::answer(std::uint32_t slot) {
  Packet& packet = devices_.packets_[slot];
  std::swap(packet.source, packet.destination);
  packet.size = run_.rules.acknowledgement;
  send_control(slot);
}

void UecTransport::receive(Port& in, std::uint32_t slot) {
  const Packet::Kind kind = devices_.packets_[slot].kind;
  if (kind == Packet::Kind::data || kind == Packet::Kind::request) return receive_data(in, slot);
  receive_control(slot);
}

UecSink& UecTransport::sink_of(const Port& in, const Packet& packet) {
  const FlowId flow{packet.source, packet.destination, packet.flow};
  return sinks_.try_emplace(flow_key(packet.source, packet.flow), flow, in.number).first->second;
}

void UecTransport::receive_data(Port& in, std::uint32_t slot) {
  Packet& packet = devices_.packets_[slot];
  UecSink& sink = sink_of(in, packet);
  sink.notes.last_came = devices_.now();
  if (packet.kind == Packet::Kind::request) {
    take_target(sink, static_cast<std::int32_t>(packet.sequence));
    begin_pulling(sink);
    return devices_.free_packet(slot);
  }
  if ((packet.flags & uec_flags::trimmed) != 0) return receive_trimmed(sink, slot);
  if ((packet.flags & uec_flags::probe) != 0) {
    sink.acknowledge(packet, false);
    return answer(slot);
  }
  take_target(sink, static_cast<std::int32_t>(packet.sequence));
  const bool was_over = sink.is_over();
  bool is_from_it = false;
  const bool is_due = sink.take(devices_.packets_[slot], is_from_it);
  if (is_due) {
    sink.acknowledge(devices_.packets_[slot], is_from_it);
    answer(slot);
  } else {
    devices_.free_packet(slot);
  }
  if (sink.is_over() && !was_over) end(sink, in);
}

/// Lets the sender know at once which packet it is to send again.
void UecTransport::receive_trimmed(UecSink& sink, std::uint32_t slot) {
  Packet& packet = devices_.packets_[slot];
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

/// Tells the user that all of a flow is there. The sink stays for a while, because the sender may not know that.
void UecTransport::end(UecSink& sink, Port& in) {
  const FlowId flow = sink.flow();
  const Time kept = run_.figures.time_out * time_outs_to_forget;
  auto& over = nic(in).over;
  over.emplace_back(devices_.now() + kept, flow_key(flow.source, flow.number));
  while (over.front().first < devices_.now()) {
    const std::uint64_t key = over.front().second;
    over.pop_front();
    const Time until = sinks_.at(key).notes.last_came + kept;
    if (until < devices_.now())
      sinks_.erase(key);
    else
      over.emplace_back(until, key);
  }
  devices_.user_.received(flow);
}

void UecTransport::receive_control(std::uint32_t slot) {
  const Packet packet = devices_.packets_[slot];
  devices_.free_packet(slot);
  UecSender* const sender = sender_of(packet.destination, packet.flow);
  if (sender == nullptr) return;
  switch (packet.kind) {
    case Packet::Kind::acknowledgement:
      sender->acknowledge(packet, devices_.now());
      break;
    case Packet::Kind::negative_acknowledgement:
      sender->reject(packet, devices_.now());
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
  devices_.user_.acknowledged(flow);
}

}  // namespace orrery::network
