#pragma once

#include <cstdint>

#include "orrery/partition/partition.hpp"

namespace orrery::partition {

/// Deals sets of `length` NPUs with consecutive ids to ranks in contiguous blocks whose numbers of sets differ by one
/// at most. `length` divides `num_npus`. Cost O(NPUs).
Partition contiguous(std::uint32_t num_npus, std::uint32_t length, int num_ranks);

}  // namespace orrery::partition
