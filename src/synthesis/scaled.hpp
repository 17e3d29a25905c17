#pragma once

#include <cstdint>
#include <vector>

#include "orrery/synthesis/model.hpp"
#include "orrery/synthesis/scale.hpp"

namespace orrery::synthesis {

/// A model's axes at another scale.
struct ScaledAxes {
  std::vector<Axis> axes = {};
  std::vector<double> factors = {};            ///< [axes] new size / learned size
  std::vector<std::uint32_t> role_table = {};  ///< as Model::role_table, for the new sizes
  std::uint32_t num_npus = 1;

  std::uint32_t role_of(std::uint32_t npu) const;
  std::uint32_t coordinate(std::uint32_t npu, std::size_t axis) const {
    return npu / axes[axis].stride % axes[axis].size;
  }
  std::uint32_t peer_of(std::uint32_t npu, const Offsets& offsets) const;
  /// Returns the coordinates of a group's members along each axis, seen from a member: [axes].
  std::vector<std::vector<std::uint32_t>> members_along(std::uint32_t npu, const GroupShape& shape) const;
  /// Returns the NPUs at all combinations of coordinates, ascending.
  std::vector<NpuId> npus_at(const std::vector<std::vector<std::uint32_t>>& along) const;
  /// Returns one NPU for each combination of the coordinates along the axes that have roles: elsewhere it has the
  /// first.
  std::vector<std::uint32_t> one_of_each_role(const std::vector<std::vector<std::uint32_t>>& along) const;
};

/// Throws Error (bad_input) for an axis that the model does not have and for sizes that are not whole.
ScaledAxes scale_axes(const Model& model, const Scale& scale);

/// Returns where iteration `i` of `count` comes from, of a loop that had `learned` iterations: the first half from its
/// start, the last one from its end, and what is between from its middle.
std::uint32_t source_of(std::uint32_t i, std::uint32_t count, std::uint32_t learned);

}  // namespace orrery::synthesis
