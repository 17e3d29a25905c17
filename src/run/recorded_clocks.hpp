#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::run {

/// Returns by how many ns the clock of each recording is ahead of that of the lowest NPU that it communicates with,
/// directly or through others: 0 for traces that are no recordings. The members of a collective end it at the same
/// moment, and so do the two ends of a message; a clock is ahead by the median of what it shows too late at those ends.
/// Messages count only for ranks that no collective ties. Collective; O(collectives log collectives).
std::vector<std::int64_t> clock_offsets(std::span<const NpuId> npus, std::span<const trace::NpuTrace> traces,
                                        const trace::Store& store, parallel::Communicator& world);

}  // namespace orrery::run
