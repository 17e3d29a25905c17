#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layout.hpp"
#include "orrery/base/hosting.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/flit_rules.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::network::flit {

/// Dimensions of a topology that are simulated together, flit by flit. Their groups are numbered.
struct Region {
  FlitDimensions dimensions;
  Layout layout;
  Time cycle;
  std::uint32_t stride = 1;       ///< difference of the ids of neighbours in the first dimension
  std::uint32_t first_group = 0;  ///< number of the first group, among those of all regions
  std::uint32_t num_groups = 0;

  std::uint32_t group_of(NpuId npu) const {
    return first_group + npu.value() / (stride * layout.num_npus()) * stride + npu.value() % stride;
  }
  /// Returns the place of an NPU among those of its group.
  std::uint32_t position_of(NpuId npu) const { return npu.value() / stride % layout.num_npus(); }
  NpuId npu_at(std::uint32_t group, std::uint32_t position) const {
    const std::uint32_t number = group - first_group;
    return NpuId(number / stride * stride * layout.num_npus() + number % stride + position * stride);
  }
};

/// All dimensions of a topology that are simulated flit by flit.
class Regions {
 public:
  Regions() = default;
  Regions(const topology::Topology& topology, std::span<const FlitDimensions> flits);

  bool empty() const { return regions_.empty(); }
  const std::vector<Region>& all() const { return regions_; }
  /// Returns the region of a dimension; null if the dimension is not simulated flit by flit.
  const Region* of_dimension(std::uint32_t d) const;
  const Region& of_group(std::uint32_t group) const;
  std::uint32_t num_groups() const { return regions_.empty() ? 0 : end_of(regions_.back()); }
  /// Returns the shortest cycle; max() without regions.
  Time least_cycle() const;
  /// Throws Error (bad_input) if a group has NPUs on two ranks.
  void require_whole_groups(const Hosting& hosting) const;

 private:
  static std::uint32_t end_of(const Region& region) { return region.first_group + region.num_groups; }

  std::vector<Region> regions_;
};

}  // namespace orrery::network::flit
