// What a switch does with packets: its shared buffer, pauses, marks and telemetry. The rules are those of the switches
// of the RoCE modules of ns-3 (docs/packet-network.md, Switches).
#include <algorithm>

#include "devices.hpp"
#include "orrery/base/mix.hpp"
#include "telemetry.hpp"
#include "uec.hpp"

namespace orrery::network {

/// Returns how many bytes the port may have in the shared buffer now.
std::int64_t PacketDevices::threshold(const Port& port) const {
  const NodeState& buffer = nodes_[port.node];
  return (buffer.shared_size - buffer.shared) >> port.ingress.shift;
}

/// Takes a packet into the buffer and the queue of the port over which it will leave, or drops it.
void PacketDevices::admit(Port& in, Port& out, std::uint32_t slot) {
  const PacketRules& rules = system_.rules;
  const auto size = static_cast<std::int64_t>(packets_[slot].size);
  const std::int64_t reserve = rules.reserve;
  const auto used = [&] { return std::max<std::int64_t>(in.ingress.bytes - reserve, 0); };
  if (size + in.ingress.headroom > in.ingress.headroom_size && size + used() > threshold(in)) return drop(in, slot);
  const std::int64_t filled = in.ingress.bytes + size;
  if (filled <= reserve) {
    in.ingress.bytes = filled;
  } else if (filled - reserve > threshold(in)) {
    in.ingress.headroom += size;
  } else {
    in.ingress.bytes = filled;
    nodes_[in.node].shared += std::min(size, filled - reserve);
  }
  if (rules.pauses && !in.ingress.pauses_peer && (in.ingress.headroom > 0 || used() >= threshold(in))) {
    send_frame(in, Packet::Kind::pause);
    in.ingress.pauses_peer = true;
  }
  enqueue(out, slot);
  kick(out);
  out.done.most_waiting = std::max(out.done.most_waiting, out.queue.size);
}

/// Begins to send a packet of the queue: it leaves the buffer.
void PacketDevices::forward(Port& out, std::uint32_t slot) {
  if (uec_) return uec_->forward(out, slot);
  const PacketRules& rules = system_.rules;
  Port& in = port(out.node, packets_[slot].port);
  const auto size = static_cast<std::int64_t>(packets_[slot].size);
  const std::int64_t from_headroom = std::min(in.ingress.headroom, size);
  const std::int64_t from_shared =
      std::min(size - from_headroom, std::max<std::int64_t>(in.ingress.bytes - rules.reserve, 0));
  in.ingress.headroom -= from_headroom;
  in.ingress.bytes -= size - from_headroom;
  nodes_[out.node].shared -= from_shared;
  if (out.marking.is_on) mark(out, packets_[slot]);
  if (in.ingress.pauses_peer && in.ingress.headroom == 0) {
    const std::int64_t used = std::max<std::int64_t>(in.ingress.bytes - rules.reserve, 0);
    if (used == 0 || used + rules.resume_offset <= threshold(in)) {
      in.ingress.pauses_peer = false;
      send_frame(in, Packet::Kind::resume);
    }
  }
  if (rules.control->uses_telemetry && packets_[slot].is_data()) append_telemetry(out, packets_[slot]);
  transmit(out, slot);
}

/// Marks a packet by the bytes that it leaves behind. The draw belongs to the seed, the port and the count of its
/// draws, so that it is the same on any number of ranks.
void PacketDevices::mark(Port& out, Packet& packet) {
  const MarkThresholds& marks = out.marking.thresholds;
  if (out.queue.bytes <= marks.least) return;
  if (out.queue.bytes <= marks.most) {
    const std::uint64_t key = mix(system_.rules.seed, std::uint64_t{out.node} << 16U | out.number);
    const double draw = static_cast<double>(mix(key, out.marking.num_draws++) >> 11U) * 0x1p-53;
    const double probability = marks.probability * static_cast<double>(out.queue.bytes - marks.least) /
                               static_cast<double>(marks.most - marks.least);
    if (draw >= probability) return;
  }
  if (packet.is_data()) packet.is_marked = true;  // the marks of acknowledgements tell nobody anything
  ++out.done.marks;
  if (recorder_) recorder_->mark(index_of(out), now());
}

void PacketDevices::append_telemetry(const Port& out, Packet& packet) {
  if (packet.telemetry == no_slot) packet.telemetry = telemetry_.put({});
  Telemetry& telemetry = telemetry_[packet.telemetry];
  if (telemetry.num_hops == Telemetry::most_hops) return;
  const std::uint32_t unit = system_.rules.parameters.telemetry_unit;
  telemetry.hops[telemetry.num_hops++] = {telemetry_time(now().ps() / 1000), telemetry_bytes(out.done.bytes, unit),
                                          telemetry_queue(out.queue.bytes + out.frames.bytes, unit), out.rate};
}

void PacketDevices::send_frame(Port& port, Packet::Kind kind) {
  Packet frame;
  frame.kind = kind;
  frame.size = system_.rules.pause_frame;
  port.frames.push(packets_, packets_.put(frame));
  kick(port);
}

}  // namespace orrery::network
