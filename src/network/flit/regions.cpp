#include "regions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orrery/base/error.hpp"

namespace orrery::network::flit {

Regions::Regions(const topology::Topology& topology, std::span<const FlitDimensions> flits) {
  for (const FlitDimensions& dimensions : flits) {
    const topology::Dimension& first = topology.dimension(dimensions.first);
    Region region{dimensions, {dimensions.shape, first.size, 1}, {}, topology.stride(dimensions.first), num_groups(),
                  0};
    if (dimensions.count > 1) region.layout.height = topology.dimension(dimensions.first + 1).size;
    const double ns = static_cast<double>(dimensions.rules.flit.count()) / first.bandwidth_of_links().bytes_per_ns();
    region.cycle = Time::from_ps(std::llround(ns * 1000));
    region.num_groups = topology.num_npus() / region.layout.num_npus();
    regions_.push_back(region);
  }
}

const Region* Regions::of_dimension(std::uint32_t d) const {
  const auto found = std::ranges::find_if(regions_, [d](const Region& one) { return one.dimensions.contains(d); });
  return found == regions_.end() ? nullptr : &*found;
}

const Region& Regions::of_group(std::uint32_t group) const {
  const auto found = std::ranges::find_if(regions_, [group](const Region& one) { return group < end_of(one); });
  ensure(found != regions_.end(), "a group of a dimension of flits has a region");
  return *found;
}

Time Regions::least_cycle() const {
  Time least = Time::max();
  for (const Region& region : regions_) least = std::min(least, region.cycle);
  return least;
}

void Regions::require_whole_groups(const Hosting& hosting) const {
  for (const Region& region : regions_) {
    for (std::uint32_t npu = 0; npu < hosting.num_npus(); ++npu) {
      const NpuId first = region.npu_at(region.group_of(NpuId(npu)), 0);
      if (hosting.of_npu[npu] == hosting.of_npu[first.index()]) continue;
      throw Error(
          ErrorCode::bad_input, {.key = "run.partition"},
          fmt::format("found NPUs {} and {} on ranks {} and {}, which are in one group of dimension {} with "
                      "`flits`: such a group is one logical process",
                      first.value(), npu, hosting.of_npu[first.index()].value(), hosting.of_npu[npu].value(),
                      region.dimensions.first),
          fmt::format("all {} NPUs of a group on one rank: this dimension as the first one and a number of ranks "
                      "that divides {}, or a rank map",
                      region.layout.num_npus(), region.num_groups));
    }
  }
}

}  // namespace orrery::network::flit
