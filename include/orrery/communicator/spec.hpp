#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::communicator {

/// A process group, the dimensions in which it takes part and the file that its collectives run: what a collective node
/// asks for. The communicator depends on the NPU.
struct GroupUse {
  std::uint32_t group_slot = 0;
  std::uint64_t dimensions = trace::all_dimensions;
  std::uint32_t custom = 0;  ///< trace::Graph::customs

  friend bool operator==(const GroupUse&, const GroupUse&) = default;
};

/// Of a communicator that stands for others: who joins it for its members.
struct Seating {
  std::vector<NpuId> seats;  ///< an NPU has several if it joins several of the communicators in different uses
  std::vector<std::uint32_t> seat_of;  ///< [members] index into seats; those of one seat arrive, and complete, together
  std::uint64_t count = 1;             ///< communicators that it stands for, itself included
};

/// A process group of the run as a communicator. Its LP id is num_npus + GroupId.
struct CommunicatorSpec {
  GroupId id;
  const trace::Group* group = nullptr;  ///< empty members = the world
  std::uint64_t dimensions = trace::all_dimensions;
  std::uint32_t custom = 0;  ///< of collective::Engine::layout, as the dimensions
  Rank host;
  const Seating* seating = nullptr;  ///< of a folded run; else every member joins for itself
};

/// Ascending: the ranks of those who join a communicator. O(members).
std::vector<Rank> ranks_of(const CommunicatorSpec& spec, std::span<const Rank> host_of_npu);

}  // namespace orrery::communicator
