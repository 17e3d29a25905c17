#pragma once

#include <cstdint>
#include <vector>

#include "orrery/topology/topology.hpp"

namespace orrery::partition {

/// The latency in ns below which links are short: two ranks that such a link joins exchange messages for each few
/// events, and take longer together than one rank.
constexpr double short_latency_ns = 20;

/// Says whether dimension d has short links between several NPUs.
bool has_short_links(const topology::Topology& topology, std::uint32_t d);

/// Sets of NPUs that should be on one rank.
struct NpuSets {
  std::vector<std::uint32_t> of_npu;  ///< [num_npus] sets, numbered in the order of their first NPUs
  std::uint32_t count = 0;
};

/// Returns the sets of NPUs that the short links of all dimensions join. O(NPUs * dimensions).
NpuSets joined_by_short_links(const topology::Topology& topology);

/// Returns these sets if there is one for each rank at least, else each NPU alone.
NpuSets kept_together(const topology::Topology& topology, int num_ranks);

}  // namespace orrery::partition
