// What a host does with packets: it sends those of its flows in turn, acknowledges what comes, and heeds
// acknowledgements. The rules are those of the hosts of the RoCE modules of ns-3 (docs/packet-network.md, Hosts).
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "devices.hpp"
#include "fast_forward.hpp"
#include "orrery/base/error.hpp"
#include "uec.hpp"

namespace orrery::network {
namespace {

/// A receiver repeats a complaint about the same gap after this time only.
constexpr Time complaint_interval = Time::from_ns(500'000);

}  // namespace

/// The timers of a flow's congestion control.
class PacketDevices::Timers final : public FlowTimers {
 public:
  Timers(PacketDevices& devices, Flow& flow) : devices_(devices), flow_(flow) {}

  Time now() const override { return devices_.now(); }
  void start(std::uint32_t number, Time delay) override { devices_.start_timer(flow_, number, delay); }

 private:
  PacketDevices& devices_;
  Flow& flow_;
};

void PacketDevices::start_timer(Flow& flow, std::uint32_t number, Time delay) {
  pdes::Event event = this->event(flow.id.source, flow.id.source, now() + delay);
  event.kind = timer;
  event.node = flow.slot;
  event.reserved = static_cast<std::uint16_t>(number);
  event.detail = flow.timers[number] = ++flows_.num_wakes;
  send_on(part_.here, event);
}

void PacketDevices::send(const FlowRequest& request) {
  if (uec_) return uec_->send(request);
  Flow& flow = flows_.add();
  flow.id = request.id;
  flow.ports = request.ports;
  flow.bytes = request.bytes;
  flow.available = now();
  Port& out = first_port(request);
  flow.rate = {.rate = out.rate,
               .line_rate = out.rate,
               .window = request.window,
               .round_trip = request.round_trip,
               .payload = system_.rules.payload};
  if (system_.rules.control->make != nullptr) flow.control = system_.rules.control->make(system_.rules.parameters);
  flow.port = out.number;
  if (system_.rules.control->sets_window) flow.rate.hops = num_links_to(flow);
  if (system_.rules.repeats()) flow.recovery = std::make_unique<Recovery>();
  if (is_here(flow.id.destination))
    flow.receiver =
        receptions_.pool.put({.source = flow.id.source, .flow = flow.id.number, .destination = flow.id.destination});
  if (fast_forward_) fast_forward_->begin(flow);
  nic(out).flows.push_back(&flow);
  ++nic(out).num_unsent;
  kick(out);
}

/// Sends the next packet of a host: acknowledgements first, in turn with packets that pass through the host; then the
/// next flow after the last one that may send.
void PacketDevices::serve_nic(Port& port) {
  Nic& there = nic(port);
  if (!port.is_paused && has_next(port, there.acknowledgements))
    return transmit(port, there.acknowledgements.pop(packets_));
  if (!port.is_paused && there.passes_next && has_next(port, port.queue)) {
    there.passes_next = false;
    const std::uint32_t slot = dequeue(port);
    return transmit(port, slot);
  }
  there.passes_next = true;
  if (Flow* const flow = next_flow(port, there)) return send_next_packet(port, there, *flow);
  if (!port.is_paused && has_next(port, port.queue)) return serve_nic(port);
  if (there.num_unsent > 0) wake_later(port, there);
}

/// Returns the next flow that may send now; null if there is none. Takes flows that are over out of the list.
Flow* PacketDevices::next_flow(const Port& port, Nic& there) {
  auto& flows = there.flows;
  const std::size_t count = flows.size();
  std::size_t chosen = count;
  bool may_be_over = there.num_unsent == 0;
  const bool window_follows_rate = system_.rules.window_follows_rate && !system_.rules.control->sets_window;
  for (std::size_t i = 1; i <= count && there.num_unsent > 0; ++i) {
    const std::size_t at = (i + there.last) % count;
    const Flow& flow = *flows[at];
    if (!port.is_paused && flow.has_more() && !flow.is_held(window_follows_rate)) {
      if (flow.available > now()) continue;
      if (credits_ && !may_begin(port, flow)) continue;
      chosen = at;
      break;
    }
    may_be_over = may_be_over || flow.is_over;
  }
  Flow* const flow = chosen < count ? flows[chosen] : nullptr;
  if (may_be_over && there.num_over > 0) {
    std::erase_if(flows, [&](const Flow* other) {
      if (other->is_over) flows_.free(other->slot);
      return other->is_over;
    });
    there.num_over = 0;
    chosen = static_cast<std::size_t>(std::ranges::find(flows, flow) - flows.begin());
  }
  if (flow != nullptr) there.last = chosen;
  return flow;
}

void PacketDevices::send_next_packet(Port& port, Nic& there, Flow& flow) {
  const bool is_again = flow.sends_again();
  const std::uint64_t first = flow.first_to_send();
  const std::uint64_t payload = std::min<std::uint64_t>(system_.rules.payload, flow.bytes - first);
  Packet packet;
  packet.source = flow.id.source;
  packet.destination = flow.id.destination;
  packet.ports = flow.ports;
  packet.flow = flow.id.number;
  packet.sender = flow.slot;
  packet.receiver = flow.receiver;
  packet.size = static_cast<std::uint32_t>(payload) + system_.rules.header;
  packet.sequence = first;
  packet.stamp = now();
  packet.is_last = first + payload == flow.bytes;
  packet.is_detouring = system_.rules.routing == PacketRouting::valiant;
  if (flow.recovery) expect_news(flow);
  if (is_again)
    flow.recovery->missing.erase(first, first + payload);
  else
    flow.next += payload;
  flow.has_sent_empty = true;
  if (!flow.has_more()) --there.num_unsent;
  flow.rate.sent = flow.next;
  flow.available = now() + flow.takes(packet.size, system_.rules.tick);
  if (fast_forward_) fast_forward_->note_sent(flow);
  transmit(port, packets_.put(packet));
}

/// Wakes the port when the first of its flows may send again.
void PacketDevices::wake_later(Port& port, Nic& there) {
  Time least = Time::max();
  for (const Flow* const flow : there.flows)
    if (flow->has_more() && flow->available > now()) least = std::min(least, flow->available);
  if (least == Time::max() || there.wakes_at != Time::max()) return;
  wake_at(port, there, least);
}

void PacketDevices::wake_at(Port& port, Nic& there, Time time) {
  pdes::Event woken = event(port.node, port.node, time);
  woken.kind = wake;
  woken.reserved = static_cast<std::uint16_t>(port.number);
  woken.detail = there.wake = ++flows_.num_wakes;
  there.wakes_at = time;
  send_on(part_.here, woken);
}

/// Returns the slot of the flow that a data packet belongs to, at its destination; `no_slot` if the flow is over.
std::uint32_t PacketDevices::reception_of(Packet& packet) {
  if (packet.receiver == no_slot) {
    const auto [found, is_new] = receptions_.by_flow.try_emplace(flow_key(packet.source, packet.flow), no_slot);
    if (is_new)
      found->second =
          receptions_.pool.put({.source = packet.source, .flow = packet.flow, .destination = packet.destination});
    packet.receiver = found->second;
  }
  const Reception& reception = receptions_.pool[packet.receiver];
  const bool is_its = reception.source == packet.source && reception.flow == packet.flow && !reception.is_over;
  return is_its ? packet.receiver : no_slot;
}

/// Forgets a flow whose bytes are all there. If none was missing on the way, no packet of it can come again.
void PacketDevices::end_reception(std::uint32_t at, const Packet& packet) {
  receptions_.pool[at].is_over = true;
  if (receptions_.pool[at].last_gap != Reception::no_gap || system_.rules.repeats()) return;
  receptions_.by_flow.erase(flow_key(packet.source, packet.flow));
  receptions_.pool.free(at);
}

void PacketDevices::receive_data(std::uint32_t slot) {
  if (system_.rules.loss == PacketLoss::selective) return receive_selectively(slot);
  Packet& packet = packets_[slot];
  const std::uint64_t payload = packet.size - system_.rules.header;
  const FlowId id{packet.source, packet.destination, packet.flow};
  const bool is_last = packet.is_last;
  const std::uint32_t at = reception_of(packet);
  if (at == no_slot) return repeat_answer(slot);
  Reception& reception = receptions_.pool[at];
  if (packet.sequence == reception.expected) {
    reception.expected += payload;
    const std::uint64_t expected = reception.expected;
    if (is_last) end_reception(at, packet);
    answer(slot, expected, is_last, Packet::Kind::acknowledgement);
    if (is_last) user_.received(id);
    return;
  }
  const bool is_gap = packet.sequence > reception.expected;
  if (!is_gap) return repeat_answer(slot);
  if (reception.last_gap == reception.expected && now() <= reception.next_complaint) return free_packet(slot);
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
  if (system_.rules.loss == PacketLoss::selective)
    packet.number = static_cast<std::uint32_t>(packet.sequence / system_.rules.payload);
  packet.sequence = expected;
  packet.is_last = is_last;
  Port* const out = next_port(packet.source, packet);
  if (out == nullptr) return free_packet(slot);
  if (fast_forward_) fast_forward_->note_packet(index_of(*out), packet);
  nic(*out).acknowledgements.push(packets_, slot);
  kick(*out);
}

/// Returns the flow that an acknowledgement is for; null if the flow is over.
Flow* PacketDevices::sender_of(const Packet& packet) {
  std::uint32_t slot = packet.sender;
  if (slot == no_slot) [[unlikely]] {  // of a packet that a checkpoint had
    const auto found = flows_.restored.find(flow_key(packet.destination, packet.flow));
    if (found == flows_.restored.end()) return nullptr;
    slot = found->second;
  }
  Flow& flow = flows_[slot];
  const bool is_current = flow.id.number == packet.flow && flow.id.source == packet.destination && !flow.is_over;
  return is_current ? &flow : nullptr;
}

void PacketDevices::receive_acknowledgement(std::uint32_t slot) {
  const Packet packet = packets_[slot];
  Flow* const sender = sender_of(packet);
  if (sender == nullptr) return free_packet(slot);
  Flow& flow = *sender;
  flow.receiver = packet.receiver;
  Port& out = port(flow.id.source, flow.port);
  const bool had_more = flow.has_more();
  const std::uint64_t num_new = take_acknowledgement(flow, packet);
  if (flow.has_more() && !had_more) ++nic(out).num_unsent;
  if (!flow.has_more() && had_more) --nic(out).num_unsent;
  flow.rate.sent = flow.next;
  flow.is_over = flow.rate.acknowledged >= flow.bytes && !flow.has_more();
  if (flow.is_over) ++nic(out).num_over;
  if (flow.is_over && fast_forward_) fast_forward_->end(flow);
  if (flow.is_over)
    std::ranges::fill(flow.timers, 0);
  else
    heed(flow, out, packet, num_new);
  const bool is_over = flow.is_over;
  const FlowId id = flow.id;
  free_packet(slot);
  kick(out);
  if (is_over) user_.acknowledged(id);
}

/// Lets the congestion control of a flow see an acknowledgement.
void PacketDevices::heed(Flow& flow, Port& port, const Packet& packet, std::uint64_t num_new) {
  if (!flow.control) return;
  static const Telemetry nothing;
  Timers timers(*this, flow);
  const Telemetry* telemetry = packet.telemetry == no_slot ? &nothing : &telemetry_[packet.telemetry];
  const std::uint64_t rate_before = flow.rate.rate;
  flow.control->acknowledge(flow.rate, {packet.sequence, packet.is_marked, packet.stamp, telemetry, num_new}, timers);
  if (!std::exchange(flow.rate.is_effective_at_once, false)) return;
  const Time tick = system_.rules.tick;
  flow.available +=
      transmission_time(flow.known.size, flow.rate.rate, tick) - transmission_time(flow.known.size, rate_before, tick);
  Nic& there = nic(port);
  if (there.wakes_at == Time::max() || flow.available >= there.wakes_at) return;
  there.wakes_at = Time::max();
  there.wake = 0;
  if (flow.available > now()) wake_at(port, there, flow.available);
}

/// Tells the congestion control of a flow that its time-out has ended.
void PacketDevices::lose(Flow& flow) {
  if (!flow.control) return;
  Timers timers(*this, flow);
  flow.control->lose(flow.rate, timers);
}

void PacketDevices::expire(const pdes::Event& event) {
  if (event.node == no_slot) return;  // of a flow that was over at a checkpoint
  Flow& flow = flows_[event.node];
  if (flow.timers[event.reserved] != event.detail) return;
  if (event.reserved == Flow::retransmission_timer) return end_wait(flow);
  Timers timers(*this, flow);
  flow.control->expire(flow.rate, event.reserved, timers);
}

}  // namespace orrery::network
