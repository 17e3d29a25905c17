#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::communicator {

/// A group, the dimensions it takes part in and the file that its collectives run: what makes a communicator.
struct Communication {
  trace::Group group;
  std::uint64_t dimensions = trace::all_dimensions;
  std::uint32_t custom = 0;

  friend auto operator<=>(const Communication&, const Communication&) = default;
};

/// The communicators that NPUs ask for, by a group of the traces and what their nodes say of it. What costs
/// O(members) is done once for each.
class Communications {
 public:
  Communications(const topology::Topology& topology, const std::vector<trace::Group>& groups)
      : topology_(topology), groups_(groups) {}

  /// An NPU of this rank asks. True: it names dimensions, which do not count in a process group. O(dimensions).
  bool ask(NpuId npu, GroupId group, const GroupUse& use);
  /// What all ranks ask for, numbered alike: sorted by name, members, dimensions and file. Collective.
  std::vector<Communication> agree(const collective::Engine& engine, parallel::Communicator& world);
  /// After `agree`.
  GroupId number(NpuId npu, GroupId group, const GroupUse& use) const;

 private:
  using Whole = std::pair<GroupId, std::uint32_t>;                  // group, file
  using SubGrid = std::tuple<std::uint64_t, NpuId, std::uint32_t>;  // dimensions, first NPU, file

  bool is_whole(GroupId group, std::uint64_t dimensions) const {
    return dimensions == trace::all_dimensions || !groups_[group.index()].members.empty();
  }
  SubGrid sub_grid(NpuId npu, const GroupUse& use) const;

  const topology::Topology& topology_;
  const std::vector<trace::Group>& groups_;
  std::map<Whole, std::uint32_t> whole_;        // number, if somebody asks for all of the group
  std::map<SubGrid, std::uint32_t> sub_grids_;  // of the world
};

}  // namespace orrery::communicator
