#include "egress_marks.hpp"

#include "orrery/base/mix.hpp"
#include "packet/port_observer.hpp"
#include "packet/telemetry.hpp"

namespace orrery::network {

double EgressMarks::draw(Port& out) const {
  const std::uint64_t key = mix(services_.system.rules.seed, std::uint64_t{out.node} << 16U | out.number);
  return static_cast<double>(mix(key, out.marking.num_draws++) >> 11U) * 0x1p-53;
}

void EgressMarks::mark_by_queue(Port& out, Packet& packet) const {
  const MarkThresholds& marks = out.marking.thresholds;
  if (out.queue.bytes <= marks.least) return;
  if (out.queue.bytes <= marks.most) {
    const double probability = marks.probability * static_cast<double>(out.queue.bytes - marks.least) /
                               static_cast<double>(marks.most - marks.least);
    if (draw(out) >= probability) return;
  }
  if (packet.is_data()) packet.is_marked = true;  // no host looks at the marks of acknowledgements
  ++out.done.marks;
  services_.ports.observer().marked(out);
}

void EgressMarks::append_hop(const Port& out, Packet& packet) const {
  Telemetry& telemetry = services_.packets.telemetry_of(packet);
  if (telemetry.num_hops == Telemetry::most_hops) return;
  const std::uint32_t unit = services_.system.rules.parameters.telemetry_unit;
  telemetry.hops[telemetry.num_hops++] = {telemetry_time(services_.events.now().ps() / 1000),
                                          telemetry_bytes(out.done.bytes, unit),
                                          telemetry_queue(out.queue.bytes + out.frames.bytes, unit), out.rate};
}

}  // namespace orrery::network
