#include "roce_receiver.hpp"

#include <algorithm>

namespace orrery::network {
namespace {

/// Time after which a receiver complains again about a gap.
constexpr Time complaint_interval = Time::from_ns(500'000);

}  // namespace

void RoceReceiver::receive_data(std::uint32_t slot) {
  if (is_selective_) return receive_in_any_order(slot);
  receive_in_order(slot);
}

/// Drops packets that come behind a gap.
void RoceReceiver::receive_in_order(std::uint32_t slot) {
  Packet& packet = services_.packets[slot];
  const std::uint64_t payload = packet.size - services_.system.rules.header;
  const FlowId id{packet.source, packet.destination, packet.flow};
  const bool is_last = packet.is_last;
  const std::uint32_t at = reception_of(packet);
  if (at == no_slot) return repeat_answer(slot);
  Reception& reception = state_.receptions.pool[at];
  if (packet.sequence == reception.expected) {
    reception.expected += payload;
    const std::uint64_t expected = reception.expected;
    if (is_last) end(at, packet);
    answer(slot, expected, is_last, Packet::Kind::acknowledgement);
    if (is_last) services_.user.received(id);
    return;
  }
  const bool is_gap = packet.sequence > reception.expected;
  if (!is_gap) return repeat_answer(slot);
  const Time now = services_.events.now();
  if (reception.last_gap == reception.expected && now <= reception.next_complaint) return services_.packets.free(slot);
  reception.last_gap = reception.expected;
  reception.next_complaint = now + complaint_interval;
  answer(slot, reception.expected, false, Packet::Kind::negative_acknowledgement);
}

/// Keeps all packets. A gap is a loss if the packets of a flow take one path.
void RoceReceiver::receive_in_any_order(std::uint32_t slot) {
  Packet& packet = services_.packets[slot];
  const FlowId id{packet.source, packet.destination, packet.flow};
  const std::uint32_t at = reception_of(packet);
  if (at == no_slot) return repeat_answer(slot);
  Reception& reception = state_.receptions.pool[at];
  const PacketRules& rules = services_.system.rules;
  const std::uint64_t begin = packet.sequence, end_of_packet = begin + packet.size - rules.header;
  const bool is_gap = begin > reception.furthest && !rules.spreads_flows();
  if (packet.is_last) reception.total = end_of_packet;
  reception.furthest = std::max(reception.furthest, end_of_packet);
  if (begin <= reception.expected)
    reception.expected = reception.ahead.take_from(std::max(reception.expected, end_of_packet));
  else
    reception.ahead.add(begin, end_of_packet);
  const std::uint64_t expected = reception.expected;
  const bool is_whole = expected == reception.total;
  if (is_whole) end(at, packet);
  answer(slot, expected, is_whole, is_gap ? Packet::Kind::negative_acknowledgement : Packet::Kind::acknowledgement);
  if (is_whole) services_.user.received(id);
}

/// Returns the slot of the flow of a data packet, at its destination; `no_slot` if the flow is over.
std::uint32_t RoceReceiver::reception_of(Packet& packet) {
  Receptions& receptions = state_.receptions;
  if (packet.receiver == no_slot) {
    const auto [found, is_new] = receptions.by_flow.try_emplace(flow_key(packet.source, packet.flow), no_slot);
    if (is_new)
      found->second =
          receptions.pool.put({.source = packet.source, .flow = packet.flow, .destination = packet.destination});
    packet.receiver = found->second;
  }
  const Reception& reception = receptions.pool[packet.receiver];
  const bool is_its = reception.source == packet.source && reception.flow == packet.flow && !reception.is_over;
  return is_its ? packet.receiver : no_slot;
}

/// Forgets a flow whose bytes have all come. If none was missing on the way, no packet of it can come again.
void RoceReceiver::end(std::uint32_t reception, const Packet& packet) {
  Receptions& receptions = state_.receptions;
  receptions.pool[reception].is_over = true;
  if (receptions.pool[reception].last_gap != Reception::no_gap || repeats_) return;
  receptions.by_flow.erase(flow_key(packet.source, packet.flow));
  receptions.pool.free(reception);
}

/// Acknowledges a data packet that has come before, if its sender may not know that.
void RoceReceiver::repeat_answer(std::uint32_t slot) {
  if (!repeats_) return services_.packets.free(slot);
  // The reception stays when the flow is over.
  const Reception& reception = state_.receptions.pool[services_.packets[slot].receiver];
  answer(slot, reception.expected, reception.is_over, Packet::Kind::acknowledgement);
}

/// Turns a data packet into its acknowledgement.
void RoceReceiver::answer(std::uint32_t slot, std::uint64_t expected, bool is_last, Packet::Kind kind) {
  const PacketRules& rules = services_.system.rules;
  Packet& packet = services_.packets[slot];
  std::swap(packet.source, packet.destination);
  packet.ports = packet.ports >> 16U | packet.ports << 16U;
  packet.kind = kind;
  packet.size = rules.acknowledgement;
  if (is_selective_) packet.number = static_cast<std::uint32_t>(packet.sequence / rules.payload);
  packet.sequence = expected;
  packet.is_last = is_last;
  Port* const out = services_.hops.by_flow(packet.source, packet);
  if (out == nullptr) return services_.packets.free(slot);
  state_.observer->answers(*out, packet);
  state_.nics[services_.ports.host_port_of(*out)].acknowledgements.push(services_.packets, slot);
  services_.ports.kick(*out);
}

// ---- Checkpoints ----

void RoceReceiver::begin_saving() {
  to_save_.clear();
  state_.receptions.pool.for_each(
      [&](std::uint32_t slot, const Reception& reception) { to_save_.emplace_back(reception.destination, slot); });
  std::ranges::sort(to_save_);
}

void RoceReceiver::serialize(std::uint32_t host, Archive& archive) {
  std::vector<Reception> receptions;
  if (!archive.reads())
    for (const auto& [destination, slot] :
         std::ranges::equal_range(to_save_, host, {}, &std::pair<std::uint32_t, std::uint32_t>::first))
      receptions.push_back(state_.receptions.pool[slot]);
  archive(receptions);
  if (!archive.reads()) return;
  for (const Reception& reception : receptions)
    state_.receptions.by_flow.emplace(flow_key(reception.source, reception.flow),
                                      state_.receptions.pool.put(reception));
}

}  // namespace orrery::network
