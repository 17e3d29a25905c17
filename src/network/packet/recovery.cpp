// What hosts do about lost packets (docs/packet-network.md, Loss): what receivers keep, what senders send again, and
// their time-outs.
#include <algorithm>

#include "devices.hpp"

namespace orrery::network {
namespace {

/// Each time-out without news doubles the next one, up to 2^6 times the first.
constexpr std::uint32_t most_doublings = 6;
constexpr Time least_timeout = Time::from_ns(1000);

}  // namespace

/// Keeps a data packet in whatever order it comes. A gap is a loss if the packets of a flow take one path.
void PacketDevices::receive_selectively(std::uint32_t slot) {
  Packet& packet = packets_[slot];
  const FlowId id{packet.source, packet.destination, packet.flow};
  const std::uint32_t at = reception_of(packet);
  if (at == no_slot) return repeat_answer(slot);
  Reception& reception = receptions_.pool[at];
  const std::uint64_t begin = packet.sequence, end = begin + packet.size - system_.rules.header;
  const bool is_gap = begin > reception.furthest && !system_.rules.spreads_flows();
  if (packet.is_last) reception.total = end;
  reception.furthest = std::max(reception.furthest, end);
  if (begin <= reception.expected)
    reception.expected = reception.ahead.take_from(std::max(reception.expected, end));
  else
    reception.ahead.add(begin, end);
  const std::uint64_t expected = reception.expected;
  const bool is_whole = expected == reception.total;
  if (is_whole) end_reception(at, packet);
  answer(slot, expected, is_whole, is_gap ? Packet::Kind::negative_acknowledgement : Packet::Kind::acknowledgement);
  if (is_whole) user_.received(id);
}

/// Acknowledges a data packet that the receiver has already, if its sender may not know that.
void PacketDevices::repeat_answer(std::uint32_t slot) {
  if (!system_.rules.repeats()) return free_packet(slot);
  const Reception& reception = receptions_.pool[packets_[slot].receiver];  // which stays when the flow is over
  answer(slot, reception.expected, reception.is_over, Packet::Kind::acknowledgement);
}

/// Notes what an acknowledgement says of the bytes of its flow. Returns how many of them no acknowledgement had.
std::uint64_t PacketDevices::take_acknowledgement(Flow& flow, const Packet& packet) {
  const bool is_selective = system_.rules.loss == PacketLoss::selective;
  std::uint64_t& acknowledged = flow.rate.acknowledged;
  const std::uint64_t before = acknowledged + (flow.recovery ? flow.recovery->ahead.bytes() : 0);
  acknowledged = std::max(acknowledged, packet.sequence);
  const bool is_negative = packet.kind == Packet::Kind::negative_acknowledgement;
  flow.next = is_negative && !is_selective ? acknowledged : std::max(flow.next, acknowledged);
  if (!flow.recovery) return acknowledged - before;
  Recovery& recovery = *flow.recovery;
  if (is_selective) {
    const std::uint64_t begin = std::uint64_t{packet.number} * system_.rules.payload;
    const std::uint64_t end = std::min(begin + system_.rules.payload, flow.bytes);
    recovery.ahead.add(std::max(begin, acknowledged), end);
    recovery.ahead.erase(0, acknowledged);
    if (is_negative) recovery.missing.add(std::max(recovery.examined, acknowledged), begin);
    recovery.missing.erase(0, acknowledged);
    recovery.missing.erase(begin, end);
    recovery.examined = std::max(recovery.examined, end);
  }
  if (flow.bytes == 0) flow.has_sent_empty = true;
  const std::uint64_t num_new = acknowledged + recovery.ahead.bytes() - before;
  if (num_new > 0) {
    recovery.news = now();
    recovery.num_timeouts = 0;
  }
  return num_new;
}

/// Starts the time-out of a flow that is about to send. An event that is pending is not moved with every
/// acknowledgement: it finds out whether it is too early.
void PacketDevices::expect_news(Flow& flow) {
  if (flow.under_way() == 0) flow.recovery->news = now();
  if (flow.timers[Flow::retransmission_timer] != 0) return;
  if (system_.rules.effective_timeout().kind == RetransmissionTimeout::Kind::none) return;
  start_timer(flow, Flow::retransmission_timer, timeout_of(flow));
}

Time PacketDevices::timeout_of(const Flow& flow) const {
  const RetransmissionTimeout& rule = system_.rules.effective_timeout();
  const Time first = rule.kind == RetransmissionTimeout::Kind::fixed
                         ? rule.time
                         : flow.rate.round_trip * RetransmissionTimeout::round_trips;
  return std::max(first, least_timeout) * (std::int64_t{1} << std::min(flow.recovery->num_timeouts, most_doublings));
}

/// Handles the end of a flow's time-out.
void PacketDevices::end_wait(Flow& flow) {
  flow.timers[Flow::retransmission_timer] = 0;
  if (flow.under_way() == 0 && flow.bytes > 0) return;
  const Time due = flow.recovery->news + timeout_of(flow);
  if (now() < due) return start_timer(flow, Flow::retransmission_timer, due - now());
  require_way(flow.id);
  Port& out = port(flow.id.source, flow.port);
  const bool had_more = flow.has_more();
  send_again(flow);
  if (flow.has_more() && !had_more) ++nic(out).num_unsent;
  flow.rate.sent = flow.next;
  lose(flow);
  start_timer(flow, Flow::retransmission_timer, timeout_of(flow));
  kick(out);
}

/// Lets a flow send again whatever is not acknowledged.
void PacketDevices::send_again(Flow& flow) {
  Recovery& recovery = *flow.recovery;
  ++recovery.num_timeouts;
  recovery.news = now();
  if (flow.bytes == 0) flow.has_sent_empty = false;
  if (system_.rules.loss == PacketLoss::go_back_n) {
    flow.next = flow.rate.acknowledged;
    return;
  }
  recovery.missing.add(flow.rate.acknowledged, flow.next);
  for (const auto& [begin, end] : recovery.ahead.ranges()) recovery.missing.erase(begin, end);
  recovery.examined = std::max(recovery.examined, flow.next);
}

/// Returns how many links the path of a flow has.
std::uint32_t PacketDevices::num_links_to(const Flow& flow) const {
  std::uint32_t num_links = 0, node = flow.id.source;
  while (node != flow.id.destination && num_links <= system_.graph.num_nodes()) {
    const std::uint16_t number = system_.router.port(node, {flow.id.source, flow.id.destination, flow.ports}, now());
    if (number == PacketRouter::no_way) break;
    node = system_.graph.ports(node)[number].peer;
    ++num_links;
  }
  return num_links;
}

}  // namespace orrery::network
