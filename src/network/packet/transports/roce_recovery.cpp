// The senders of RoCE take acknowledgements, and send lost packets again (docs/packet-network.md, Loss).
#include <algorithm>
#include <utility>

#include "roce_sender.hpp"

namespace orrery::network {
namespace {

/// Each time-out without news doubles the next one, up to 2^6 times the first.
constexpr std::uint32_t most_doublings = 6;
constexpr Time least_timeout = Time::from_ns(1000);

}  // namespace

// ---- Acknowledgements ----

/// Returns the flow of an acknowledgement; null if the flow is over.
Flow* RoceSender::sender_of(const Packet& packet) {
  std::uint32_t slot = packet.sender;
  if (slot == no_slot) [[unlikely]] {  // the packet comes from a checkpoint
    const auto found = state_.flows.restored.find(flow_key(packet.destination, packet.flow));
    if (found == state_.flows.restored.end()) return nullptr;
    slot = found->second;
  }
  Flow& flow = state_.flows[slot];
  const bool is_current = flow.id.number == packet.flow && flow.id.source == packet.destination && !flow.is_over;
  return is_current ? &flow : nullptr;
}

void RoceSender::receive_acknowledgement(std::uint32_t slot) {
  const Packet packet = services_.packets[slot];
  Flow* const sender = sender_of(packet);
  if (sender == nullptr) return services_.packets.free(slot);
  Flow& flow = *sender;
  flow.receiver = packet.receiver;
  Port& out = services_.ports.at(flow.id.source, flow.port);
  Nic& there = nic(out);
  const bool had_more = flow.has_more();
  const std::uint64_t num_new = take_acknowledgement(flow, packet);
  if (flow.has_more() && !had_more) ++there.num_unsent;
  if (!flow.has_more() && had_more) --there.num_unsent;
  flow.rate.sent = flow.next;
  flow.is_over = flow.rate.acknowledged >= flow.bytes && !flow.has_more();
  const bool is_over = flow.is_over;
  if (is_over) {
    ++there.num_over;
    state_.observer->ended(flow);
    std::ranges::fill(flow.timers, 0);
  } else {
    inform_control(flow, out, packet, num_new);
  }
  const FlowId id = flow.id;
  services_.packets.free(slot);
  services_.ports.kick(out);
  if (is_over) services_.user.acknowledged(id);
}

/// Notes which bytes of its flow an acknowledgement covers. Returns how many of them no acknowledgement had covered.
std::uint64_t RoceSender::take_acknowledgement(Flow& flow, const Packet& packet) {
  const bool is_selective = services_.system.rules.loss == PacketLoss::selective;
  std::uint64_t& acknowledged = flow.rate.acknowledged;
  const std::uint64_t before = acknowledged + (flow.recovery ? flow.recovery->ahead.bytes() : 0);
  acknowledged = std::max(acknowledged, packet.sequence);
  const bool is_negative = packet.kind == Packet::Kind::negative_acknowledgement;
  flow.next = is_negative && !is_selective ? acknowledged : std::max(flow.next, acknowledged);
  if (!flow.recovery) return acknowledged - before;
  Recovery& recovery = *flow.recovery;
  if (is_selective) take_selectively(flow, packet);
  if (flow.bytes == 0) flow.has_sent_empty = true;
  const std::uint64_t num_new = acknowledged + recovery.ahead.bytes() - before;
  if (num_new > 0) {
    recovery.news = services_.events.now();
    recovery.num_timeouts = 0;
  }
  return num_new;
}

/// Notes which packet beyond the acknowledged bytes has come, and which packets a gap says are missing.
void RoceSender::take_selectively(Flow& flow, const Packet& packet) {
  Recovery& recovery = *flow.recovery;
  const std::uint64_t acknowledged = flow.rate.acknowledged, payload = services_.system.rules.payload;
  const std::uint64_t begin = std::uint64_t{packet.number} * payload;
  const std::uint64_t end = std::min(begin + payload, flow.bytes);
  recovery.ahead.add(std::max(begin, acknowledged), end);
  recovery.ahead.erase(0, acknowledged);
  if (packet.kind == Packet::Kind::negative_acknowledgement)
    recovery.missing.add(std::max(recovery.examined, acknowledged), begin);
  recovery.missing.erase(0, acknowledged);
  recovery.missing.erase(begin, end);
  recovery.examined = std::max(recovery.examined, end);
}

/// Lets the congestion control of a flow see an acknowledgement.
void RoceSender::inform_control(Flow& flow, Port& port, const Packet& packet, std::uint64_t num_new) {
  if (!flow.control) return;
  static constexpr Telemetry nothing;
  const Telemetry* const found = services_.packets.find_telemetry(packet);
  const Telemetry* const telemetry = found == nullptr ? &nothing : found;
  const std::uint64_t rate_before = flow.rate.rate;
  Timers timers(*this, flow);
  flow.control->acknowledge(flow.rate, {packet.sequence, packet.is_marked, packet.stamp, telemetry, num_new}, timers);
  if (!std::exchange(flow.rate.is_effective_at_once, false)) return;
  const Time tick = services_.system.rules.tick;
  flow.available +=
      transmission_time(flow.known.size, flow.rate.rate, tick) - transmission_time(flow.known.size, rate_before, tick);
  Nic& there = nic(port);
  if (there.wakes_at == Time::max() || flow.available >= there.wakes_at) return;
  there.wakes_at = Time::max();
  there.wake = 0;
  if (flow.available > services_.events.now()) wake_at(port, there, flow.available);
}

void RoceSender::expire(const pdes::Event& event) {
  if (event.node == no_slot) return;  // the flow was over at a checkpoint
  Flow& flow = state_.flows[event.node];
  if (flow.timers[event.reserved] != event.detail) return;
  if (event.reserved == Flow::retransmission_timer) return end_wait(flow);
  Timers timers(*this, flow);
  flow.control->expire(flow.rate, event.reserved, timers);
}

// ---- Time-outs ----

/// Starts the time-out of a flow that is about to send. A pending event is not moved with every acknowledgement.
/// Instead it finds out whether it is too early.
void RoceSender::expect_news(Flow& flow) {
  if (flow.under_way() == 0) flow.recovery->news = services_.events.now();
  if (flow.timers[Flow::retransmission_timer] != 0) return;
  if (services_.system.rules.effective_timeout().kind == RetransmissionTimeout::Kind::none) return;
  start_timer(flow, Flow::retransmission_timer, timeout_of(flow));
}

Time RoceSender::timeout_of(const Flow& flow) const {
  const RetransmissionTimeout& rule = services_.system.rules.effective_timeout();
  const Time first = rule.kind == RetransmissionTimeout::Kind::fixed
                         ? rule.time
                         : flow.rate.round_trip * RetransmissionTimeout::round_trips;
  return std::max(first, least_timeout) * (std::int64_t{1} << std::min(flow.recovery->num_timeouts, most_doublings));
}

/// Handles the end of a flow's time-out.
void RoceSender::end_wait(Flow& flow) {
  flow.timers[Flow::retransmission_timer] = 0;
  if (flow.under_way() == 0 && flow.bytes > 0) return;
  const Time now = services_.events.now(), due = flow.recovery->news + timeout_of(flow);
  if (now < due) return start_timer(flow, Flow::retransmission_timer, due - now);
  services_.hops.require_way(flow.id);
  Port& out = services_.ports.at(flow.id.source, flow.port);
  const bool had_more = flow.has_more();
  send_again(flow);
  if (flow.has_more() && !had_more) ++nic(out).num_unsent;
  flow.rate.sent = flow.next;
  if (flow.control) {
    Timers timers(*this, flow);
    flow.control->lose(flow.rate, timers);
  }
  start_timer(flow, Flow::retransmission_timer, timeout_of(flow));
  services_.ports.kick(out);
}

/// Lets a flow send again all bytes that are not acknowledged.
void RoceSender::send_again(Flow& flow) {
  Recovery& recovery = *flow.recovery;
  ++recovery.num_timeouts;
  recovery.news = services_.events.now();
  if (flow.bytes == 0) flow.has_sent_empty = false;
  if (services_.system.rules.loss == PacketLoss::go_back_n) {
    flow.next = flow.rate.acknowledged;
    return;
  }
  recovery.missing.add(flow.rate.acknowledged, flow.next);
  for (const auto& [begin, end] : recovery.ahead.ranges()) recovery.missing.erase(begin, end);
  recovery.examined = std::max(recovery.examined, flow.next);
}

}  // namespace orrery::network
