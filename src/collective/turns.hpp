#pragma once

#include <cstdint>

#include "group_layout.hpp"
#include "orrery/collective/options.hpp"

namespace orrery::collective {

/// Returns a turn without what makes no difference to a collective.
Turn that_counts(const Options& options, const GroupLayout& layout, Kind kind, Turn turn);

/// Returns the turn after so many chunks of a collective that began with `turn`.
Turn after(const Options& options, const GroupLayout& layout, Kind kind, Turn turn, std::uint64_t num_chunks);

/// Returns Turn::queues with the same queue in each dimension that a collective uses, and 0 in the others.
std::uint64_t same_queue(const Options& options, const GroupLayout& layout, Kind kind, std::uint32_t queue);

}  // namespace orrery::collective
