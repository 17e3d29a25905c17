#include "orrery/topology/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orrery/base/error.hpp"

namespace orrery::topology {
namespace {

constexpr std::size_t max_dimensions = 64;     // a mask of dimensions is one 64-bit word
constexpr std::uint64_t max_npus = 1U << 24U;  // more would need more memory than a machine has

}  // namespace

Topology::Topology(std::vector<Dimension> dimensions, Rules rules, Links links)
    : dimensions_(std::move(dimensions)), rules_(rules), links_(std::move(links)) {
  if (dimensions_.empty()) throw Error(ErrorCode::bad_input, "the topology has no dimension; expected 1 to 64");
  if (dimensions_.size() > max_dimensions)
    throw Error(ErrorCode::bad_input,
                fmt::format("the topology has {} dimensions; expected 1 to 64", dimensions_.size()));
  std::uint64_t num_npus = 1;
  Time least = Time::max();
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    const Dimension& dimension = dimensions_[d];
    validate(dimension, d, name(dimension.shape));
    strides_.push_back(static_cast<std::uint32_t>(num_npus));
    num_npus *= dimension.size;
    if (num_npus > max_npus)
      throw Error(ErrorCode::bad_input,
                  fmt::format("topology, dimension {} ({}): with its size of {} there are more than {} NPUs", d,
                              name(dimension.shape), dimension.size, max_npus));
    const auto number = static_cast<std::uint32_t>(d);
    if (dimension.size > 1)
      least = std::min(least,
                       link_delay(number, fewest_hops(dimension.shape), Bytes(0), {1, links_.least_latency(number)}));
  }
  num_npus_ = static_cast<std::uint32_t>(num_npus);
  minimum_delay_ = least == Time::max() ? tick(rules_.rounding) : std::max(least, tick(rules_.rounding));
}

std::uint32_t Topology::coordinate(NpuId npu, std::uint32_t d) const {
  return npu.value() / strides_[d] % dimensions_[d].size;
}

Time Topology::link_delay(std::uint32_t d, std::uint32_t hops, Bytes size, const Port& port) const {
  const Dimension& dimension = dimensions_[d];
  const double of_links = dimension.bandwidth_of_links().bytes_per_ns();
  double bandwidth = of_links * port.bandwidth;
  if (dimension.oversubscription > 1) bandwidth = std::min(bandwidth, of_links / dimension.oversubscription);
  return orrery::delay(hops * dimension.latency_ns * port.latency, size, Bandwidth::from_bytes_per_ns(bandwidth),
                       rules_.rounding);
}

Time Topology::delay(NpuId a, NpuId b, Bytes size) const {
  return std::max(path_delay(a, b, size), tick(rules_.rounding));
}

Time Topology::path_delay(NpuId a, NpuId b, Bytes size) const {
  Time total;
  for_each_leg(
      a, b, [&](std::uint32_t d, std::uint32_t hops, const Port& port) { total += link_delay(d, hops, size, port); });
  return total;
}

}  // namespace orrery::topology
