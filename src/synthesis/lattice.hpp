#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/synthesis/model.hpp"

namespace orrery::synthesis {

/// NPUs that belong together, with how often this is used.
struct WeightedMembers {
  std::vector<std::uint32_t> members;  ///< ascending
  double weight = 1;
};

/// A distance between the two ends of messages, positive.
struct WeightedDistance {
  std::uint32_t distance = 0;
  double weight = 1;
};

/// Finds the axes along which groups and messages lie: the strides and sizes of a mixed radix system of `num_npus` in
/// which as many groups as possible are all NPUs along one or several axes. Groups and distances count in the order of
/// their weights; what contradicts those before it is left out. Innermost first; a single axis if nothing else fits.
/// O(members + groups log groups).
std::vector<Axis> find_axes(std::uint32_t num_npus, std::vector<WeightedMembers> groups,
                            std::vector<WeightedDistance> distances);

/// The coordinates that the members of a group have along each axis: [axes]; and whether the group is their product.
struct GroupCoordinates {
  std::vector<std::set<std::uint32_t>> along;
  bool is_product = true;
};

/// `members`: as they are listed; empty: all NPUs. O(members * axes).
GroupCoordinates coordinates_of_group(std::span<const Axis> axes, std::span<const NpuId> members);

/// Returns how a group lies on the axes, seen from one of its members. O(coordinates).
GroupShape shape_of(std::span<const Axis> axes, std::uint32_t npu, const GroupCoordinates& group);

/// Returns the offsets to a peer, each of the least size; of two that are as small, the one that does not wrap.
Offsets offsets_to(std::span<const Axis> axes, std::uint32_t npu, std::uint32_t peer);

/// Returns the coordinates of the members along one axis, ascending. `own` is the coordinate of the member that sees
/// the group, `size` that of the axis now.
std::vector<std::uint32_t> coordinates_of(const Extent& extent, std::uint32_t own, std::uint32_t size);

}  // namespace orrery::synthesis
