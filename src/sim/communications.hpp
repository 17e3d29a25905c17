#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::sim {

/// A group and the dimensions it takes part in: what makes a communicator.
struct Communication {
  trace::Group group;
  std::uint64_t dimensions = trace::all_dimensions;

  friend auto operator<=>(const Communication&, const Communication&) = default;
};

/// The communicators that NPUs ask for, by a group of the traces and the dimensions of their nodes. What costs
/// O(members) is done once for each.
class Communications {
 public:
  Communications(const topology::Topology& topology, const std::vector<trace::Group>& groups)
      : topology_(topology), groups_(groups), whole_(groups.size(), unknown) {}

  /// An NPU of this rank asks. True: it names dimensions, which do not count in a process group. O(dimensions).
  bool ask(NpuId npu, GroupId group, std::uint64_t dimensions);
  /// What all ranks ask for, numbered alike: sorted by name, members and dimensions. Collective.
  std::vector<Communication> agree(const collective::Engine& engine, parallel::Communicator& world);
  /// After `agree`.
  GroupId number(NpuId npu, GroupId group, std::uint64_t dimensions) const;

 private:
  using SubGrid = std::pair<std::uint64_t, NpuId>;  // dimensions, first NPU
  static constexpr std::uint32_t unknown = ~0U;

  bool is_whole(GroupId group, std::uint64_t dimensions) const {
    return dimensions == trace::all_dimensions || !groups_[group.index()].members.empty();
  }
  SubGrid sub_grid(NpuId npu, std::uint64_t dimensions) const;

  const topology::Topology& topology_;
  const std::vector<trace::Group>& groups_;
  std::vector<std::uint32_t> whole_;            // [groups] number, if somebody asks for all of it
  std::map<SubGrid, std::uint32_t> sub_grids_;  // of the world
};

}  // namespace orrery::sim
