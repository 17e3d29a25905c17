#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/network/delay_model.hpp"

namespace orrery::topology {
class Circuits;
}
namespace orrery::trace {
struct Group;
}

namespace orrery::collective {

/// How the positions of a group lie along one dimension whose links join neighbours.
struct TorusSide {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::uint32_t size = 0;    ///< positions along the dimension
  double bandwidth = 0;      ///< bytes per ns, of the links between two neighbours in one direction
  std::uint32_t end = none;  ///< the last position of a row, behind which the first one follows; none: it is a ring

  bool is_row() const { return end != none; }
  friend bool operator==(const TorusSide&, const TorusSide&) = default;
};

/// All dimension groups of one kind in a communicator: along one dimension of its grid, or the one group of all its
/// members. But for `ports` and `npus` the groups are alike: position i of each has the same delay to position j.
struct Axis {
  std::uint32_t size = 0;                 ///< positions in a group, 2 or more
  std::vector<std::uint32_t> dimensions;  ///< ascending; one, unless all members form one group
  /// [dimensions][size] of each position, in a normal form that keeps the hops between any two positions: of a Ring
  /// relative to the first position, of a Mesh to the lowest, of the other shapes numbered as they appear. Groups that
  /// behave alike are equal.
  std::vector<std::uint32_t> coordinates;
  std::vector<std::uint32_t> members;  ///< [groups][size]: which member of the communicator has the position
  bool in_order = false;               ///< members is 0, 1, 2, ...
  /// The delay between positions i and j depends on (i - j) mod size only.
  bool circulant = false;
  /// Every position has the same set of delays, and the same delay to its partner in each step of halving-doubling.
  bool transitive = false;
  /// [dimensions][groups][size] the kind of port of each position (topology::Links), where not all are 0; else empty.
  std::vector<std::uint16_t> ports;
  /// [groups][size] the NPU in each position, where a link that they may use has failed; else empty.
  std::vector<NpuId> npus;
  /// The dimensions as sides of a torus; empty: the groups are none, or a link has failed.
  std::vector<TorusSide> torus;

  std::uint32_t num_groups() const { return static_cast<std::uint32_t>(members.size() / size); }
  /// Returns where each member stands in `members`. [members]
  std::vector<std::uint32_t> places() const {
    std::vector<std::uint32_t> result(members.size());
    for (std::uint32_t place = 0; place < result.size(); ++place) result[members[place]] = place;
    return result;
  }
  std::uint16_t port(std::size_t dimension, std::uint32_t group, std::uint32_t position) const {
    return ports[dimension * members.size() + std::size_t{group} * size + position];
  }
  std::uint32_t coordinate(std::size_t dimension, std::uint32_t position) const {
    return coordinates[dimension * size + position];
  }
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// Axes of a grid in a row whose groups together are tori.
struct JointAxes {
  std::uint32_t first = 0, count = 0;  ///< among GroupLayout::axes
  Axis axis;                           ///< along all of them
};

/// See collective.hpp. Communicators that behave alike have equal layouts and share one.
class GroupLayout : public std::enable_shared_from_this<GroupLayout> {
 public:
  std::uint32_t num_members = 0;
  bool subgroup = false;      ///< smaller than the world, and not one of the world's sub-grids by involved dimensions
  std::uint32_t sharing = 0;  ///< index into BandwidthSharing::sharers
  bool always_ring = false;   ///< one ring in the order listed, whatever the algorithms say
  std::vector<Axis> axes;     ///< axes of the grid, lowest dimension first; empty if there is none
  std::vector<JointAxes> joint;  ///< with DimensionOrder::all_axes; they follow from `axes`
  std::optional<Axis> whole;  ///< all members as one group, in the order listed or by ids; kept where a kind may use it
  /// The same with the positions of each group in opposite order, where some chunks go round the other way; else empty.
  std::vector<Axis> axes_back;
  std::optional<Axis> whole_back;
  /// [dimensions of the network] slowest ports of the members, where a library needs them and not all have the factors
  /// 1; else empty.
  std::vector<topology::Port> slowest_ports;
  /// What carries out its collectives, whatever their kind; null: what Options say.
  std::shared_ptr<const CustomCollective> custom;

  friend bool operator==(const GroupLayout& a, const GroupLayout& b) {
    return a.num_members == b.num_members && a.subgroup == b.subgroup && a.sharing == b.sharing &&
           a.always_ring == b.always_ring && a.axes == b.axes && a.whole == b.whole &&
           a.slowest_ports == b.slowest_ports && a.custom == b.custom;
  }
};

/// Which layout to build: the arguments of Engine::layout, and what the options need.
struct GroupLayoutRequest {
  std::span<const NpuId> members;  ///< not empty
  bool sub_grid = false;           ///< members are a sub-grid of the world by involved dimensions
  bool needs_whole = false;        ///< some kind uses a `one*` algorithm or a custom collective
  bool subgroup_is_ring = false;   ///< Rules::subgroup_is_ring
  bool world_by_ids = false;       ///< all NPUs as one group stand in the order of their ids, however they are listed
  bool two_directions = false;     ///< Rules::two_directions
  bool all_axes = false;           ///< DimensionOrder::all_axes
};

/// Throws Error (internal) if a member appears twice, or `sub_grid` members are not a grid. O(members * dimensions).
GroupLayout build_layout(const network::DelayModel& delays, const GroupLayoutRequest& request);

std::size_t hash(const GroupLayout& layout);

/// Returns where the members of a group stand in its configuration of the circuits, as ids. O(members).
std::vector<NpuId> positions_of(const topology::Circuits& circuits, const trace::Group& group);
/// Returns the NPUs that differ from an NPU in these dimensions alone, a bit each. O(result).
std::vector<NpuId> members_of_sub_grid(const topology::Topology& topology, NpuId npu, std::uint64_t dimensions);

}  // namespace orrery::collective
