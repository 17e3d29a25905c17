#pragma once

#include <cstdint>

#include "group_layout.hpp"
#include "orrery/collective/options.hpp"

namespace orrery::collective {

/// Returns a turn without what makes no difference to a collective.
Turn that_counts(const Options& options, const GroupLayout& layout, Kind kind, Turn turn);

/// Returns the turn after so many chunks of a collective that began with `turn`.
Turn after(const Options& options, const GroupLayout& layout, Kind kind, Turn turn, std::uint64_t num_chunks);

/// Returns the turn with one queue and one tree in all dimensions that a collective uses, and 0 in the others.
Turn in_all_dimensions(const Options& options, const GroupLayout& layout, Kind kind, std::uint32_t queue,
                       bool is_odd_tree);

/// Returns whether even and odd chunks of collectives of a kind go over different trees, in groups that use the world's
/// dimensions.
bool takes_turns_at_trees(const Options& options, Kind kind);

}  // namespace orrery::collective
