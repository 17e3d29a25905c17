#include "shape_links.hpp"

#include <algorithm>

namespace orrery::network {
namespace {

/// Returns whether NPUs that differ in one dimension only are on different ranks.
bool spans_ranks(const topology::Topology& topology, std::uint32_t d, const Hosting& hosting) {
  for (std::uint32_t npu = 0; npu < topology.num_npus(); ++npu) {
    const std::uint32_t first = npu - topology.coordinate(NpuId(npu), d) * topology.stride(d);
    if (hosting.of_npu[npu] != hosting.of_npu[first]) return true;
  }
  return false;
}

}  // namespace

// A message takes its dimensions in ascending order, and its source hears of the end of the last one. So what follows
// from a link is on the same rank if no group of its dimension, or of a lower one, spans ranks.
Time ShapeLinks::least_pass_between_ranks(const Hosting& hosting) const {
  const topology::Topology& topology = fabric_.topology();
  Time least = Time::max();
  bool has_left = false;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    has_left = has_left || spans_ranks(topology, d, hosting);
    if (has_left && topology.dimension(d).size > 1) least = std::min(least, delays_.least_pass(d));
  }
  return least;
}

}  // namespace orrery::network
