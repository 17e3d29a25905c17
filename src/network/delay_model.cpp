#include "orrery/network/delay_model.hpp"

#include <algorithm>
#include <utility>

namespace orrery::network {

DelayModel::DelayModel(topology::Topology topology, Rules rules) : topology_(std::move(topology)), rules_(rules) {
  Time least = Time::max();
  for (std::uint32_t d = 0; d < topology_.num_dimensions(); ++d) {
    const topology::Dimension& dimension = topology_.dimension(d);
    if (dimension.size == 1) continue;
    const topology::Port fastest{1, topology_.links().least_latency(d)};
    least = std::min(least, link_delay(d, topology_.wiring(d).fewest_hops(), Bytes(0), fastest));
  }
  minimum_delay_ = least == Time::max() ? tick(rules_.rounding) : std::max(least, tick(rules_.rounding));
}

Time DelayModel::link_delay(std::uint32_t d, std::uint32_t hops, Bytes size, const topology::Port& port) const {
  const topology::Dimension& dimension = topology_.dimension(d);
  const double of_links = dimension.bandwidth_of_links().bytes_per_ns();
  double bandwidth = of_links * port.bandwidth;
  if (dimension.oversubscription > 1) bandwidth = std::min(bandwidth, of_links / dimension.oversubscription);
  return orrery::delay(hops * dimension.latency_ns * port.latency, size, Bandwidth::from_bytes_per_ns(bandwidth),
                       rules_.rounding);
}

Time DelayModel::delay(NpuId a, NpuId b, Bytes size) const {
  return std::max(path_delay(a, b, size), tick(rules_.rounding));
}

Time DelayModel::path_delay(NpuId a, NpuId b, Bytes size) const {
  Time total;
  for_each_leg(a, b, [&](std::uint32_t d, std::uint32_t hops, const topology::Port& port) {
    total += link_delay(d, hops, size, port);
  });
  return total;
}

}  // namespace orrery::network
