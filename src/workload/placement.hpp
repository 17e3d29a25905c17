#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layer.hpp"
#include "orrery/base/ids.hpp"

namespace orrery::workload {

/// Returns the name of a kind of group: "tp", "dp", ...
std::string_view name(GroupKind kind);

/// Gives each NPU coordinates in the grid of the axes, and finds its groups.
class Placement {
 public:
  using Coordinates = std::array<std::uint32_t, num_axes>;  ///< coordinate along each Axis

  explicit Placement(const Parallel& parallel);

  Coordinates coordinates(NpuId npu) const;
  NpuId npu(const Coordinates& coordinates) const;
  std::uint32_t stage(NpuId npu) const { return coordinates(npu)[static_cast<std::size_t>(Axis::pp)]; }
  /// Returns which part of the experts an NPU has, 0 to Parallel::num_expert_ranks().
  std::uint32_t expert_rank(NpuId npu) const;
  /// Returns the NPU with the same coordinates in another stage.
  NpuId in_stage(NpuId npu, std::uint32_t stage) const;

  /// Returns the members of the NPU's group of a kind, ascending. O(members).
  std::vector<NpuId> members(GroupKind kind, NpuId npu) const;
  /// Returns the member with the lowest id. O(1).
  NpuId first_member(GroupKind kind, NpuId npu) const;
  /// Returns the name of the NPU's group of a kind, "tp_dp3_pp1", without the axes of one NPU.
  std::string group_name(GroupKind kind, NpuId npu) const;

 private:
  /// Says whether the copies of such parameters are in two stages of a pipeline, one for each direction.
  bool has_mirror(GroupKind kind) const;
  /// Returns the stage that holds the same layers.
  std::uint32_t mirror(const Coordinates& of) const;

  const Parallel& parallel_;
  std::array<std::uint32_t, num_axes> strides_{};  ///< stride of each Axis
};

}  // namespace orrery::workload
