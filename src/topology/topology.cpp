#include "orrery/topology/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orrery/base/error.hpp"

namespace orrery::topology {
namespace {

constexpr std::size_t max_dimensions = 64;  // a mask of dimensions is one 64-bit word
constexpr double min_bandwidth = 1e-9;      // bytes per ns: one byte per second
constexpr double max_oversubscription = 1e6;
constexpr double max_bandwidth = 9e9;          // bytes per ns: bytes per second fit a signed 64-bit number
constexpr std::uint64_t max_npus = 1U << 24U;  // more would need more memory than a machine has

[[noreturn]] void refuse(std::size_t d, const Dimension& dimension, std::string_view found, std::string_view expected) {
  throw Error(ErrorCode::bad_input,
              fmt::format("topology, dimension {} ({}): {}; expected {}", d, name(dimension.shape), found, expected));
}

void validate(std::size_t d, const Dimension& dimension) {
  if (dimension.size == 0) refuse(d, dimension, "its size is 0", "1 NPU or more");
  const double bandwidth = dimension.bandwidth.bytes_per_ns();
  if (!(bandwidth > 0))
    refuse(d, dimension, fmt::format("its bandwidth is {} bytes/ns", bandwidth), "a positive number");
  if (!(bandwidth >= min_bandwidth && bandwidth <= max_bandwidth))
    refuse(d, dimension, fmt::format("its bandwidth is {} bytes/ns", bandwidth), "1 byte/s to 9e18 bytes/s");
  if (!(dimension.latency_ns >= 0 && std::isfinite(dimension.latency_ns)))
    refuse(d, dimension, fmt::format("its latency is {} ns", dimension.latency_ns), "0 or more");
  if (dimension.in_switch_operations > 0 && dimension.shape != Shape::switched)
    refuse(d, dimension, fmt::format("it offers {} in-switch operations", dimension.in_switch_operations),
           "0: only the switch of a Switch dimension carries out operations");
  if (dimension.links == 0) refuse(d, dimension, "it has 0 links side by side", "1 link or more");
  if (!(dimension.bandwidth_of_links().bytes_per_ns() <= max_bandwidth))
    refuse(d, dimension,
           fmt::format("its {} links side by side have {} bytes/ns", dimension.links,
                       dimension.bandwidth_of_links().bytes_per_ns()),
           "9e18 bytes/s at the most");
  const double factor = dimension.oversubscription;
  if (!(factor >= 1 && factor <= max_oversubscription))
    refuse(d, dimension, fmt::format("its oversubscription is {}", factor), "1 (none) to 1e6");
  if (factor != 1 && dimension.in_switch_operations > 0)
    refuse(d, dimension,
           fmt::format("it offers {} in-switch operations and is oversubscribed by {}", dimension.in_switch_operations,
                       factor),
           "one of the two: what operations take of a switch that passes less than its links is not modelled");
  if (factor != 1 && dimension.shape != Shape::switched)
    refuse(d, dimension, fmt::format("its oversubscription is {}", factor), "1: only a Switch may be oversubscribed");
  if (!(bandwidth * dimension.links / factor >= min_bandwidth))
    refuse(d, dimension,
           fmt::format("an oversubscription of {} leaves an NPU {} bytes/ns", factor,
                       bandwidth * dimension.links / factor),
           "1 byte/s or more");
}

}  // namespace

std::string_view name(Shape shape) {
  switch (shape) {
    case Shape::ring:
      return "Ring";
    case Shape::mesh:
      return "Mesh";
    case Shape::fully_connected:
      return "FullyConnected";
    case Shape::switched:
      return "Switch";
  }
  fail_check("a shape that does not exist", std::source_location::current());
}

std::uint64_t directed_links(const Dimension& dimension) {
  const std::uint64_t n = dimension.size;
  if (n == 1) return 0;
  switch (dimension.shape) {
    case Shape::fully_connected:
      return n * (n - 1) * dimension.links;
    case Shape::ring:
      return (n == 2 ? 2 : 2 * n) * dimension.links;
    case Shape::mesh:
      return 2 * (n - 1) * dimension.links;
    case Shape::switched:
      return n * dimension.links;
  }
  return 0;
}

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
    validate(d, dimension);
    strides_.push_back(static_cast<std::uint32_t>(num_npus));
    num_npus *= dimension.size;
    if (num_npus > max_npus)
      throw Error(ErrorCode::bad_input,
                  fmt::format("topology, dimension {} ({}): with its size of {} there are more than {} NPUs", d,
                              name(dimension.shape), dimension.size, max_npus));
    const auto number = static_cast<std::uint32_t>(d);
    if (dimension.size > 1)
      least = std::min(least, link_delay(number, hops(number, 1), Bytes(0), {1, links_.least_latency(number)}));
  }
  num_npus_ = static_cast<std::uint32_t>(num_npus);
  minimum_delay_ = least == Time::max() ? tick(rules_.rounding) : std::max(least, tick(rules_.rounding));
}

std::uint32_t Topology::coordinate(NpuId npu, std::uint32_t d) const {
  return npu.value() / strides_[d] % dimensions_[d].size;
}

std::uint32_t Topology::hops(std::uint32_t d, std::uint32_t difference) const {
  const Dimension& dimension = dimensions_[d];
  if (difference == 0) return 0;
  switch (dimension.shape) {
    case Shape::ring:
      return std::min(difference, dimension.size - difference);
    case Shape::mesh:
      return difference;
    case Shape::fully_connected:
      return 1;
    case Shape::switched:
      return 2;
  }
  fail_check("a shape that does not exist", std::source_location::current());
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
