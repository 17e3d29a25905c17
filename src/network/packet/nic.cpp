// What a host does with packets: it sends those of its flows in turn, acknowledges what comes, and heeds
// acknowledgements. The rules are those of the hosts of the RoCE modules of ns-3 (docs/packet-network.md, Hosts).
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "devices.hpp"
#include "orrery/base/error.hpp"

namespace orrery::network {
namespace {

/// A receiver repeats a complaint about the same gap after this time only.
constexpr Time complaint_interval = Time::from_ns(500'000);

std::uint64_t key_of(const Packet& packet) { return std::uint64_t{packet.source} << 32U | packet.flow; }

}  // namespace

/// The timers of a flow's congestion control.
class PacketDevices::Timers final : public FlowTimers {
 public:
  Timers(PacketDevices& devices, Flow& flow) : devices_(devices), flow_(flow) {}

  Time now() const override { return devices_.now(); }
  void start(std::uint32_t number, Time delay) override {
    pdes::Event event = devices_.event(flow_.source, flow_.source, devices_.now() + delay);
    event.kind = timer;
    event.node = flow_.slot;
    event.reserved = static_cast<std::uint16_t>(number);
    event.detail = flow_.timers[number] = ++devices_.num_wakes_;
    devices_.part_.kernel.send(devices_.part_.here, event);
  }

 private:
  PacketDevices& devices_;
  Flow& flow_;
};

std::uint32_t PacketDevices::new_flow() {
  if (free_flows_.empty()) {
    flows_.push_back(std::make_unique<Flow>());
    return static_cast<std::uint32_t>(flows_.size() - 1);
  }
  const std::uint32_t slot = free_flows_.back();
  free_flows_.pop_back();
  *flows_[slot] = {};
  return slot;
}

void PacketDevices::send(const FlowRequest& request) {
  const std::uint32_t slot = new_flow();
  Flow& flow = *flows_[slot];
  flow.number = request.id.number;
  flow.source = request.id.source;
  flow.destination = request.id.destination;
  flow.ports = request.ports;
  flow.slot = slot;
  flow.bytes = request.bytes;
  flow.available = now();
  Packet first;
  first.source = flow.source;
  first.destination = flow.destination;
  first.ports = flow.ports;
  Port* const out = next_port(flow.source, first);
  if (out == nullptr)
    throw Error(ErrorCode::bad_input,
                fmt::format("no working link leads from host {} to host {}", flow.source, flow.destination));
  flow.rate = {.rate = out->rate,
               .line_rate = out->rate,
               .window = request.window,
               .round_trip = request.round_trip,
               .payload = system_.rules.payload};
  if (system_.rules.control->make != nullptr) flow.control = system_.rules.control->make(system_.rules.parameters);
  flow.port = out->number;
  if (is_here(flow.destination)) flow.receiver = receptions_.put({.source = flow.source, .flow = flow.number});
  nic(*out).flows.push_back(&flow);
  kick(*out);
}

/// Sends the next packet of a host: acknowledgements first, in turn with packets that pass through the host; then the
/// next flow after the last one that may send.
void PacketDevices::serve_nic(Port& port) {
  Nic& there = nic(port);
  if (!port.is_paused && !there.acknowledgements.empty()) return transmit(port, there.acknowledgements.pop(packets_));
  if (!port.is_paused && !port.queue.empty() && std::exchange(there.passes_next, false)) {
    const std::uint32_t slot = dequeue(port);
    port.egress -= packets_[slot].size;
    return transmit(port, slot);
  }
  there.passes_next = true;
  auto& flows = there.flows;
  const std::size_t count = flows.size();
  std::size_t chosen = count, over = count;
  for (std::size_t i = 1; i <= count; ++i) {
    const std::size_t at = (i + there.last) % count;
    Flow& flow = *flows[at];
    if (!port.is_paused && flow.has_more() && !flow.is_held(system_.rules.window_follows_rate)) {
      if (flow.available > now()) continue;
      chosen = at;
      break;
    }
    if (flow.is_over) over = std::min(over, at);
  }
  if (over < count) {  // takes out those that are over
    Flow* const sender = chosen < count ? flows[chosen] : nullptr;
    for (std::size_t i = over; i < count; ++i)
      if (flows[i]->is_over) free_flows_.push_back(flows[i]->slot);
    flows.erase(std::remove_if(flows.begin() + static_cast<std::ptrdiff_t>(over), flows.end(),
                               [](const Flow* flow) { return flow->is_over; }),
                flows.end());
    chosen = static_cast<std::size_t>(std::ranges::find(flows, sender) - flows.begin());
  }
  if (chosen < flows.size()) {
    there.last = chosen;
    return send_next_packet(port, there, *flows[chosen]);
  }
  if (!port.is_paused && !port.queue.empty()) return serve_nic(port);
  wake_later(port, there);
}

void PacketDevices::send_next_packet(Port& port, Nic&, Flow& flow) {
  const std::uint64_t payload = std::min<std::uint64_t>(system_.rules.payload, flow.bytes - flow.next);
  Packet packet;
  packet.source = flow.source;
  packet.destination = flow.destination;
  packet.ports = flow.ports;
  packet.flow = flow.number;
  packet.sender = flow.slot;
  packet.receiver = flow.receiver;
  packet.size = static_cast<std::uint32_t>(payload) + system_.rules.header;
  packet.sequence = flow.next;
  packet.stamp = now();
  flow.next += payload;
  packet.is_last = flow.next == flow.bytes;
  flow.has_sent_empty = true;
  flow.rate.sent = flow.next;
  flow.last_size = packet.size;
  flow.available = now() + flow.takes(packet.size, system_.rules.tick);
  transmit(port, packets_.put(packet));
}

/// Wakes the port when the first of its flows may send again.
void PacketDevices::wake_later(Port& port, Nic& there) {
  Time least = Time::max();
  for (const Flow* const flow : there.flows) least = std::min(least, flow->available);
  if (least == Time::max() || least <= now() || there.wakes_at != Time::max()) return;
  wake_at(port, there, least);
}

void PacketDevices::wake_at(Port& port, Nic& there, Time time) {
  pdes::Event woken = event(port.node, port.node, time);
  woken.kind = wake;
  woken.reserved = static_cast<std::uint16_t>(port.number);
  woken.detail = there.wake = ++num_wakes_;
  there.wakes_at = time;
  part_.kernel.send(part_.here, woken);
}

/// Returns the slot of the flow that a data packet belongs to, at its destination; `no_slot` if the flow is over.
std::uint32_t PacketDevices::reception_of(Packet& packet) {
  if (packet.receiver == no_slot) {
    const auto [found, is_new] = reception_slots_.try_emplace(key_of(packet), no_slot);
    if (is_new) found->second = receptions_.put({.source = packet.source, .flow = packet.flow});
    packet.receiver = found->second;
  }
  const Reception& reception = receptions_[packet.receiver];
  const bool is_its = reception.source == packet.source && reception.flow == packet.flow && !reception.is_over;
  return is_its ? packet.receiver : no_slot;
}

/// Forgets a flow whose bytes are all there. If none was missing on the way, no packet of it can come again.
void PacketDevices::end_reception(std::uint32_t at, const Packet& packet) {
  receptions_[at].is_over = true;
  if (receptions_[at].last_gap != Reception::no_gap) return;
  reception_slots_.erase(key_of(packet));
  receptions_.free(at);
}

void PacketDevices::receive_data(std::uint32_t slot) {
  Packet& packet = packets_[slot];
  const std::uint64_t payload = packet.size - system_.rules.header;
  const FlowId id{packet.source, packet.destination, packet.flow};
  const bool is_last = packet.is_last;
  const std::uint32_t at = reception_of(packet);
  if (at == no_slot) return free_packet(slot);
  Reception& reception = receptions_[at];
  if (packet.sequence == reception.expected) {
    reception.expected += payload;
    const std::uint64_t expected = reception.expected;
    if (is_last) end_reception(at, packet);
    answer(slot, expected, is_last, Packet::Kind::acknowledgement);
    if (is_last) user_.received(id);
    return;
  }
  const bool is_gap = packet.sequence > reception.expected;
  if (!is_gap || (reception.last_gap == reception.expected && now() <= reception.next_complaint))
    return free_packet(slot);
  reception.last_gap = reception.expected;
  reception.next_complaint = now() + complaint_interval;
  answer(slot, reception.expected, false, Packet::Kind::negative_acknowledgement);
}

/// Turns a data packet into its acknowledgement.
void PacketDevices::answer(std::uint32_t slot, std::uint64_t expected, bool is_last, Packet::Kind kind) {
  Packet& packet = packets_[slot];
  std::swap(packet.source, packet.destination);
  packet.ports = packet.ports >> 16U | packet.ports << 16U;
  packet.kind = kind;
  packet.size = system_.rules.acknowledgement;
  packet.sequence = expected;
  packet.echoes_mark = std::exchange(packet.is_marked, false);
  packet.is_last = is_last;
  Port* const out = next_port(packet.source, packet);
  if (out == nullptr) return free_packet(slot);
  nic(*out).acknowledgements.push(packets_, slot);
  kick(*out);
}

void PacketDevices::receive_acknowledgement(std::uint32_t slot) {
  const Packet packet = packets_[slot];
  Flow& flow = *flows_[packet.sender];
  const bool is_current = flow.number == packet.flow && flow.source == packet.destination && !flow.is_over;
  if (!is_current) return free_packet(slot);
  flow.receiver = packet.receiver;
  flow.rate.acknowledged = std::max(flow.rate.acknowledged, packet.sequence);
  if (packet.kind == Packet::Kind::negative_acknowledgement) flow.next = flow.rate.acknowledged;
  flow.rate.sent = flow.next;
  flow.is_over = flow.rate.acknowledged >= flow.bytes && !flow.has_more();
  Port& out = port(flow.source, flow.port);
  if (flow.is_over)
    std::ranges::fill(flow.timers, 0);
  else
    heed(flow, out, packet);
  const bool is_over = flow.is_over;
  const FlowId id{flow.source, flow.destination, flow.number};
  free_packet(slot);
  kick(out);
  if (is_over) user_.acknowledged(id);
}

/// Lets the congestion control of a flow see an acknowledgement.
void PacketDevices::heed(Flow& flow, Port& port, const Packet& packet) {
  if (!flow.control) return;
  static const Telemetry nothing;
  Timers timers(*this, flow);
  const Telemetry* telemetry = packet.telemetry == no_slot ? &nothing : &telemetry_[packet.telemetry];
  const std::uint64_t rate_before = flow.rate.rate;
  flow.control->acknowledge(flow.rate, {packet.sequence, packet.echoes_mark, packet.stamp, telemetry}, timers);
  if (!std::exchange(flow.rate.is_effective_at_once, false)) return;
  const Time tick = system_.rules.tick;
  flow.available +=
      transmission_time(flow.last_size, flow.rate.rate, tick) - transmission_time(flow.last_size, rate_before, tick);
  Nic& there = nic(port);
  if (there.wakes_at == Time::max() || flow.available >= there.wakes_at) return;
  there.wakes_at = Time::max();
  there.wake = 0;
  if (flow.available > now()) wake_at(port, there, flow.available);
}

void PacketDevices::expire(const pdes::Event& event) {
  Flow& flow = *flows_[event.node];
  if (flow.timers[event.reserved] != event.detail) return;
  Timers timers(*this, flow);
  flow.control->expire(flow.rate, event.reserved, timers);
}

}  // namespace orrery::network
