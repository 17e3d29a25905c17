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
  port_latency_.resize(core_latency_.size());
  for (const topology::SharedPort& port : fabric.topology().ports().all()) {
    if (!port.is_contended) continue;
    Time least = Time::max();
    for (std::uint32_t d = 0; d < core_latency_.size(); ++d)
      if ((port.dimensions >> d & 1U) != 0) least = std::min(least, least_latency(d));
    for (std::uint32_t d = 0; d < core_latency_.size(); ++d)
      if ((port.dimensions >> d & 1U) != 0) port_latency_[d] = Time::from_ps(least.ps() / 4 / a_tick * a_tick);
  }
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
  if (link.is_of_port) return orrery::delay(0, size, fabric_.bandwidth(link), rounding_);
  return delay(link.dimension, 0, size, fabric_.port(link));
}

Time LinkDelays::passes(const Fabric::Link& link, Bytes size) const {
  const LinkRole role = fabric_.role(link);
  // A message is behind a port when its first byte is: the link behind the port is no faster.
  if (role == LinkRole::port) return std::max(port_latency_[link.dimension], tick(rounding_));
  const Time core = core_latency_[link.dimension];
  Time time = role == LinkRole::core ? holds(link, size) + core : delay(link.dimension, 1, size, fabric_.port(link));
  if (role == LinkRole::behind_core && time < Time::max()) time -= core;
  if (fabric_.port_before(link) != nullptr && time < Time::max()) time -= port_latency_[link.dimension];
  return std::max(time, tick(rounding_));
}

Time LinkDelays::least_pass() const {
  Time least = Time::max();
  for (std::uint32_t d = 0; d < core_latency_.size(); ++d)
    if (fabric_.topology().dimension(d).size > 1) least = std::min(least, least_pass(d));
  return least;
}

Time LinkDelays::least_pass(std::uint32_t d) const {
  Time least = fabric_.has_core(d) ? core_latency_[d] : least_latency(d) - port_latency_[d];
  if (port_latency_[d] > Time::zero()) least = std::min(least, port_latency_[d]);
  return std::max(least, tick(rounding_));
}

}  // namespace orrery::network
