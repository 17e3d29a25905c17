#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/network/delay_model.hpp"

namespace orrery::collective {

/// All lines of one kind in a communicator: along one dimension of its grid, or the one line of all its members. But
/// for `ports` and `npus` the lines are alike: place i of each has the same delay to place j.
struct Axis {
  std::uint32_t size = 0;                 ///< places in a line, 2 or more
  std::vector<std::uint32_t> dimensions;  ///< ascending; one, unless all members form one line
  /// [dimensions][size] of each place, in a normal form that keeps the hops between any two places: of a Ring relative
  /// to the first place, of a Mesh to the lowest, of the other shapes numbered as they appear. Lines that behave alike
  /// are equal.
  std::vector<std::uint32_t> coordinates;
  std::vector<std::uint32_t> members;  ///< [lines][size]: the position among the members of who stands there
  bool in_order = false;               ///< members is 0, 1, 2, ...
  /// The delay between places i and j depends on (i - j) mod size only.
  bool circulant = false;
  /// Every place sees the same set of delays, and the same delay to its partner in each step of halving-doubling.
  bool transitive = false;
  /// [dimensions][lines][size] the kind of port of each place (topology::Links), where not all are 0; else empty.
  std::vector<std::uint16_t> ports;
  /// [lines][size] the NPU in each place, where a link that they may use has failed; else empty.
  std::vector<NpuId> npus;

  std::uint32_t num_lines() const { return static_cast<std::uint32_t>(members.size() / size); }
  std::uint16_t port(std::size_t dimension, std::uint32_t line, std::uint32_t place) const {
    return ports[dimension * members.size() + std::size_t{line} * size + place];
  }
  std::uint32_t coordinate(std::size_t dimension, std::uint32_t place) const {
    return coordinates[dimension * size + place];
  }
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// See collective.hpp. Communicators that behave alike have equal layouts and share one.
class GroupLayout : public std::enable_shared_from_this<GroupLayout> {
 public:
  std::uint32_t num_members = 0;
  bool subgroup = false;     ///< smaller than the world, and not one of the world's sub-grids by involved dimensions
  bool always_ring = false;  ///< one ring in the order listed, whatever the algorithms say
  std::vector<Axis> axes;    ///< of the grid, lowest dimension first; empty if there is none
  std::optional<Axis> line;  ///< of all members in the order listed; kept where some kind may use it
  /// What its collectives run, whatever their kind; null: what Options say.
  std::shared_ptr<const CustomCollective> procedure;

  friend bool operator==(const GroupLayout& a, const GroupLayout& b) {
    return a.num_members == b.num_members && a.subgroup == b.subgroup && a.always_ring == b.always_ring &&
           a.axes == b.axes && a.line == b.line && a.procedure == b.procedure;
  }
};

/// What layout to build: the arguments of Engine::layout and whether `one*` algorithms are in use.
struct GroupLayoutRequest {
  std::span<const NpuId> members;  ///< not empty
  bool sub_grid = false;           ///< members are a sub-grid of the world by involved dimensions
  bool needs_line = false;         ///< some kind uses a `one*` algorithm
  bool subgroup_is_ring = false;   ///< Rules::subgroup_is_ring
};

/// Throws Error (internal) if a member appears twice, or `sub_grid` members are not a grid. O(members * dimensions).
GroupLayout build_layout(const network::DelayModel& delays, const GroupLayoutRequest& request);

std::size_t hash(const GroupLayout& layout);

}  // namespace orrery::collective
