#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithm.hpp"
#include "group_layout.hpp"

namespace orrery::collective {

/// Returns whether a broadcast or reduce has a list of algorithms of its own. Then each chunk goes whole through one
/// dimension after the other.
bool goes_whole(const Options& options, Kind kind);

/// Returns the list of algorithms that a kind uses.
const std::vector<Algorithm>& algorithms_for(const Options& options, Kind kind);

/// Returns the custom collectives that a kind has in place of algorithms; nothing if it has none.
std::span<const std::shared_ptr<const CustomCollective>> custom_collectives(const Options& options,
                                                                            const GroupLayout& layout, Kind kind);
/// Returns the one for so many members; null if there is none.
const CustomCollective* custom_for(std::span<const std::shared_ptr<const CustomCollective>> list,
                                   std::uint32_t num_members);

/// One phase of a chunk, with where it runs.
struct Phase {
  const Axis* axis = nullptr;
  PhaseShape shape;
  std::uint32_t axis_idx = 0;  ///< among the axes in use
  bool down = false;           ///< the way back down of a local_bw_aware all-reduce
};
using Route = std::vector<Phase>;  ///< the phases of a chunk in order; none for one member

/// Returns what an algorithm carries out in the groups of an axis: in rings and tori an exchange with all neighbours,
/// if the options have links used in both directions or several axes at once. The axis must outlive it.
PhaseShape shape_on(const Options& options, const Axis& axis, const Algorithm& algorithm, Kind kind);

/// How a collective is cut into chunks (docs/collectives.md, Chunks and dimensions).
struct Chunks {
  std::uint64_t count = 1;
  Bytes size;
};
Chunks cut(const Options& options, Kind kind, Bytes size, std::uint64_t num_npus, std::uint32_t num_members);

/// Returns what the delays of a phase in the groups of `axis` depend on, for a chunk that shares no bandwidth.
GroupContext group_context(const network::DelayModel& delays, const Options& options, const GroupLayout& layout,
                           const Axis& axis);

/// The ways of a collective's chunks.
struct Routes {
  std::vector<Route> routes;
  std::vector<std::uint32_t> of_chunk;  ///< [chunks] index of the route; empty: there is one, which all chunks take

  std::uint32_t of(std::uint64_t chunk) const { return of_chunk.empty() ? 0 : of_chunk[chunk]; }
};

/// Returns the dimensions of whose queues the chunks of a collective take turns: of one group, the first.
std::vector<std::uint32_t> dimensions_of_turns(const Options& options, const GroupLayout& layout, Kind kind);

/// Returns the routes, when `turn` holds at the beginning, as ChunkScheduling::dimension_order says. The layout must
/// outlive them. O(chunks * axes^2).
Routes routes_of(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind,
                 const Chunks& chunks, Turn turn);

/// Returns routes for what does not depend on sizes: among them every axis that can be
/// first or last for chunks of some size is so.
std::vector<Route> possible_routes(const Options& options, const GroupLayout& layout, Kind kind);

}  // namespace orrery::collective
