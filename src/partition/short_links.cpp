#include "orrery/partition/short_links.hpp"

#include <numeric>

namespace orrery::partition {

bool has_short_links(const topology::Topology& topology, std::uint32_t d) {
  const topology::Dimension& dimension = topology.dimension(d);
  return dimension.size > 1 && dimension.latency_ns * topology.links().least_latency(d) < short_latency_ns;
}

NpuSets joined_by_short_links(const topology::Topology& topology) {
  NpuSets sets{std::vector<std::uint32_t>(topology.num_npus()), 1};
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    if (has_short_links(topology, d)) continue;
    for (std::uint32_t npu = 0; npu < topology.num_npus(); ++npu)
      sets.of_npu[npu] += topology.coordinate(NpuId(npu), d) * sets.count;
    sets.count *= topology.dimension(d).size;
  }
  return sets;
}

NpuSets kept_together(const topology::Topology& topology, int num_ranks) {
  NpuSets sets = joined_by_short_links(topology);
  if (sets.count >= static_cast<std::uint32_t>(num_ranks)) return sets;
  std::iota(sets.of_npu.begin(), sets.of_npu.end(), 0U);
  sets.count = topology.num_npus();
  return sets;
}

}  // namespace orrery::partition
