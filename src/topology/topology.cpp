#include "orrery/topology/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::topology {
namespace {

constexpr std::size_t max_dimensions = 64;     // a mask of dimensions is one 64-bit word
constexpr std::uint64_t max_npus = 1U << 24U;  // more would need more memory than a machine has

}  // namespace

Topology::Topology(std::vector<Dimension> dimensions, Links links, const PortRates& rates)
    : dimensions_(std::move(dimensions)), links_(std::move(links)) {
  if (dimensions_.empty()) throw Error(ErrorCode::bad_input, "the topology has no dimension; expected 1 to 64");
  if (dimensions_.size() > max_dimensions)
    throw Error(ErrorCode::bad_input,
                fmt::format("the topology has {} dimensions; expected 1 to 64", dimensions_.size()));
  std::uint64_t num_npus = 1;
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    const Dimension& dimension = dimensions_[d];
    validate(dimension, d, name(dimension.shape));
    divisors_.push_back({Divisor(static_cast<std::uint32_t>(num_npus)), Divisor(dimension.size)});
    num_npus *= dimension.size;
    if (num_npus > max_npus)
      throw Error(ErrorCode::bad_input,
                  fmt::format("topology, dimension {} ({}): with its size of {} there are more than {} NPUs", d,
                              name(dimension.shape), dimension.size, max_npus));
  }
  num_npus_ = static_cast<std::uint32_t>(num_npus);
  ports_ = SharedPorts(dimensions_, rates);
  for (std::uint32_t d = 0; d < num_dimensions(); ++d)
    if (const SharedPort* const port = ports_.of(d))
      dimensions_[d].bandwidth = std::min(
          dimensions_[d].bandwidth, Bandwidth::from_bytes_per_ns(port->rate.bytes_per_ns() / dimensions_[d].links));
  for (const Dimension& dimension : dimensions_) {
    const bool is_uniform = dimension.shape->symmetry == HopSymmetry::permutations;
    GroupWiring& group = wirings_.emplace_back(make_wiring(dimension));
    if (is_uniform) group.uniform_hops = group.wiring->most_hops();
  }
}

}  // namespace orrery::topology
