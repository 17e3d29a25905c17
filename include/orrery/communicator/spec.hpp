#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::communicator {

/// What a collective node asks for: a process group, the dimensions in which it takes part and the file that its
/// collectives run. Which communicator that is depends on the NPU.
struct GroupUse {
  std::uint32_t group_slot = 0;
  std::uint64_t dimensions = trace::all_dimensions;
  std::uint32_t custom = 0;  ///< trace::Graph::customs

  friend bool operator==(const GroupUse&, const GroupUse&) = default;
};

/// Who joins a communicator of a folded run, in which one communicator stands for all that behave alike and one NPU for
/// all NPUs that do (docs/folding.md).
struct Representatives {
  /// An NPU occurs several times if it joins several of these communicators in different uses.
  std::vector<NpuId> npus;
  /// [members] index into `npus`: who joins for the member. Members with the same representative arrive together. They
  /// are expected to complete together; see Divergence.
  std::vector<std::uint32_t> of_member;
  std::uint64_t count = 1;  ///< communicators for which this one stands, itself included
};

/// A process group of the run as a communicator. Its LP id is num_npus + GroupId.
///
/// The *participants* of a communicator are the NPUs that join it: its representatives if it has any, else each of its
/// members for itself. They are numbered in the order of `representatives->npus` or of the group.
struct CommunicatorSpec {
  GroupId id;
  const trace::Group* group = nullptr;  ///< empty members = the world
  std::uint64_t dimensions = trace::all_dimensions;
  std::uint32_t custom = 0;  ///< argument of collective::Engine::layout, like the dimensions
  Rank host;
  const Representatives* representatives = nullptr;  ///< representatives in a folded run; otherwise null

  /// Returns the number of communicators for which this one stands, itself included.
  std::uint64_t count() const { return representatives ? representatives->count : 1; }
  /// Returns the member at this position of the group.
  NpuId member(std::uint32_t position) const {
    return group->members.empty() ? NpuId(position) : group->members[position];
  }
  std::uint32_t num_members(std::uint32_t num_npus) const {
    return group->members.empty() ? num_npus : static_cast<std::uint32_t>(group->members.size());
  }
  /// Returns the number of the participant that joins for the member at this position.
  std::uint32_t number_of(std::uint32_t position) const {
    return representatives ? representatives->of_member[position] : position;
  }
  NpuId participant(std::uint32_t number) const {
    return representatives ? representatives->npus[number] : member(number);
  }
  std::uint32_t num_participants(std::uint32_t num_npus) const {
    return representatives ? static_cast<std::uint32_t>(representatives->npus.size()) : num_members(num_npus);
  }
};

/// Returns the ranks of the participants of a communicator, ascending, each once. O(members).
std::vector<Rank> ranks_of(const CommunicatorSpec& spec, std::span<const Rank> host_of_npu);

}  // namespace orrery::communicator
