// The queues of ports with UEC: control packets and trimmed ones go before data.
#include <algorithm>

#include "orrery/base/mix.hpp"
#include "uec.hpp"

namespace orrery::network {
namespace {

/// Packets that wait behind others; the rest goes first.
bool is_low(const Packet& packet) { return packet.is_data() && (packet.flags & uec_flags::trimmed) == 0; }

}  // namespace

/// Takes a packet into a queue of the port over which it leaves. Data that does not fit are trimmed or dropped: this
/// packet or the last one of the queue, with equal probability.
void UecTransport::admit(Port& out, std::uint32_t slot) {
  const Packet& packet = devices_.packets_[slot];
  if (!is_low(packet)) {
    trim(out, slot);
    return devices_.kick(out);
  }
  const Service& service = services_[devices_.index_of(out)];
  const std::uint64_t in_service = service.until == out.free && devices_.now() < out.free ? service.size : 0;
  if (!devices_.is_host(out) && out.queue.bytes + in_service + packet.size > run_.queue_at(out.rate)) {
    if (out.queue.empty() || draw(out) >= 0.5) {
      trim(out, slot);
      return devices_.kick(out);
    }
    trim(out, take_last(out));
  }
  devices_.enqueue(out, slot);
  devices_.kick(out);
  out.done.most_waiting = std::max(out.done.most_waiting, out.queue.size);
}

/// Puts a packet, cut down to its header if it has data, into the queue that goes first, as far as there is room.
void UecTransport::trim(Port& out, std::uint32_t slot) {
  Packet& packet = devices_.packets_[slot];
  if (is_low(packet)) {
    if (!run_.rules.trimming) return devices_.drop(devices_.port(out.node, packet.port), slot);
    packet.flags |= uec_flags::trimmed;
    if (out.peer.node == packet.destination) packet.flags |= uec_flags::last_hop;
    packet.size = run_.rules.header;
    ++out.done.trims;
  }
  const bool is_full = out.frames.bytes + packet.size > 2 * run_.queue_at(out.rate);
  if (is_full && !devices_.is_host(out)) return devices_.drop(devices_.port(out.node, packet.port), slot);
  out.frames.push(devices_.packets_, slot);
}

/// Takes the packet that came last out of the queue. O(length of the queue).
std::uint32_t UecTransport::take_last(Port& out) {
  PacketQueue rest;
  const std::uint32_t last = out.queue.last;
  while (out.queue.first != last) rest.push(devices_.packets_, out.queue.pop(devices_.packets_));
  out.queue = rest;
  out.done.queueing += devices_.now();
  if (devices_.recorder_) devices_.recorder_->take_last(devices_.index_of(out), devices_.now(), out.queue.bytes);
  return last;
}

double UecTransport::draw(Port& out) {
  const std::uint64_t key = mix(run_.rules.seed, std::uint64_t{out.node} << 16U | out.number);
  return static_cast<double>(mix(key, out.marking.num_draws++) >> 11U) * 0x1p-53;
}

void UecTransport::forward(Port& out, std::uint32_t slot) {
  Packet& packet = devices_.packets_[slot];
  if (out.marking.is_on) devices_.mark(out, packet);
  const std::uint32_t size = packet.size;
  devices_.transmit(out, slot);
  services_[devices_.index_of(out)] = {out.free, size};
}

}  // namespace orrery::network
