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

/// What makes a communicator: a group, the dimensions it takes part in and the file that its collectives run.
struct Communication {
  trace::Group group;
  std::uint64_t dimensions = trace::all_dimensions;
  std::uint32_t custom = 0;

  friend auto operator<=>(const Communication&, const Communication&) = default;
};

/// Collects the communicators that NPUs ask for, each by a group of the traces and what the nodes say of it, and
/// numbers them. Work that costs O(members) is done once for each communicator.
class Communications {
 public:
  Communications(const topology::Topology& topology, const std::vector<trace::Group>& groups)
      : topology_(topology), groups_(groups) {}

  /// Takes note that an NPU of this rank asks for a communicator. Returns true if it names dimensions, which do not
  /// count in a process group. O(dimensions).
  bool ask(NpuId npu, GroupId group, const GroupUse& use);
  /// Returns what all ranks ask for, sorted by name, members, dimensions and file: the index is the number. Collective.
  std::vector<Communication> agree(const collective::Engine& engine, parallel::Communicator& world);
  /// Returns the number of a communicator that an NPU has asked for. `agree` must have been called.
  GroupId number(NpuId npu, GroupId group, const GroupUse& use) const;

 private:
  using Whole = std::pair<GroupId, std::uint32_t>;                  // group, file
  using SubGrid = std::tuple<std::uint64_t, NpuId, std::uint32_t>;  // dimensions, lowest NPU, file

  bool is_whole(GroupId group, std::uint64_t dimensions) const {
    return dimensions == trace::all_dimensions || !groups_[group.index()].members.empty();
  }
  SubGrid sub_grid(NpuId npu, const GroupUse& use) const;

  const topology::Topology& topology_;
  const std::vector<trace::Group>& groups_;
  std::map<Whole, std::uint32_t> whole_;        // numbers of whole groups
  std::map<SubGrid, std::uint32_t> sub_grids_;  // numbers of sub-grids of the world
};

}  // namespace orrery::communicator
