#include "orrery/network/link_delays.hpp"

#include <algorithm>

namespace orrery::network {

using topology::Fabric;
using topology::LinkRole;

LinkDelays::LinkDelays(const Fabric& fabric, Rounding rounding)
    : fabric_(fabric), rounding_(rounding), core_latency_(fabric.topology().num_dimensions()) {
  const std::int64_t a_tick = tick(rounding).ps();
  for (std::uint32_t d = 0; d < core_latency_.size(); ++d)
    if (fabric.has_core(d)) core_latency_[d] = Time::from_ps(least_latency(d).ps() / 2 / a_tick * a_tick);
}

Time LinkDelays::delay(std::uint32_t d, std::uint32_t hops, Bytes size, const topology::Port& port) const {
  const topology::Dimension& dimension = fabric_.topology().dimension(d);
  const double bandwidth = dimension.bandwidth_of_links().bytes_per_ns() * port.bandwidth;
  return orrery::delay(hops * dimension.latency_ns * port.latency, size, Bandwidth::from_bytes_per_ns(bandwidth),
                       rounding_);
}

Time LinkDelays::least_latency(std::uint32_t d) const {
  return delay(d, 1, Bytes(0), {1, fabric_.topology().links().least_latency(d)});
}

Time LinkDelays::holds(const Fabric::Link& link, Bytes size) const {
  return delay(link.dimension, 0, size, fabric_.port(link));
}

Time LinkDelays::passes(const Fabric::Link& link, Bytes size) const {
  const LinkRole role = fabric_.role(link);
  const Time core = core_latency_[link.dimension];
  Time time = role == LinkRole::core ? holds(link, size) + core : delay(link.dimension, 1, size, fabric_.port(link));
  if (role == LinkRole::behind_core && time < Time::max()) time -= core;
  return std::max(time, tick(rounding_));
}

Time LinkDelays::least_pass() const {
  Time least = Time::max();
  for (std::uint32_t d = 0; d < core_latency_.size(); ++d)
    if (fabric_.topology().dimension(d).size > 1) least = std::min(least, least_pass(d));
  return least;
}

Time LinkDelays::least_pass(std::uint32_t d) const {
  return std::max(fabric_.has_core(d) ? core_latency_[d] : least_latency(d), tick(rounding_));
}

}  // namespace orrery::network
