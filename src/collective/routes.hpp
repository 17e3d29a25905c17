#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "group_layout.hpp"
#include "line.hpp"
#include "orrery/collective/custom_collective.hpp"

namespace orrery::collective {

/// The kind whose phases and algorithms a kind uses (docs/collectives.md): the first four are their own.
Kind parent(Kind kind);

/// Broadcast and reduce with algorithms of their own: each chunk goes whole through one dimension after the other.
bool goes_whole(const Options& options, Kind kind);

const std::vector<Algorithm>& algorithms(const Options& options, Kind kind);

/// The procedures that a kind has in place of algorithms; empty if it has none.
std::span<const std::shared_ptr<const CustomCollective>> procedures(const Options& options, const GroupLayout& layout,
                                                                    Kind kind);
/// The one for so many members; null if there is none.
const CustomCollective* procedure_for(std::span<const std::shared_ptr<const CustomCollective>> list,
                                      std::uint32_t num_members);

/// One phase of a chunk, with where it runs.
struct Phase {
  const Axis* axis = nullptr;
  PhaseShape shape;
  std::uint32_t axis_idx = 0;  ///< among the axes in use
  bool down = false;           ///< the way back down of a local_bw_aware all-reduce
};
using Route = std::vector<Phase>;  ///< the phases of a chunk in order; none for one member

/// How a collective is cut (docs/model.md, 7).
struct Chunks {
  std::uint64_t count = 1;
  Bytes size;
};
Chunks cut(const Options& options, Kind kind, Bytes size, std::uint64_t num_npus, std::uint32_t num_members);

/// What the delays of a phase in the lines of `axis` depend on.
LineContext line_context(const network::DelayModel& delays, const Options& options, const GroupLayout& layout,
                         const Axis& axis);

/// The ways of a collective's chunks.
struct Routes {
  std::vector<Route> routes;
  std::vector<std::uint32_t> of_chunk;  ///< [chunks] which route; empty: there is one, which all take

  std::uint32_t of(std::uint64_t chunk) const { return of_chunk.empty() ? 0 : of_chunk[chunk]; }
};

/// As Options::dimension_order says. The layout must outlive them. O(chunks * axes^2).
Routes routes_of(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind,
                 const Chunks& chunks);

/// For what does not depend on sizes: routes in which every axis has every place that chunks of any size may give it
/// first and last.
std::vector<Route> possible_routes(const Options& options, const GroupLayout& layout, Kind kind);

}  // namespace orrery::collective
