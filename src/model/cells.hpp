#pragma once

#include <cstdint>
#include <vector>

#include "orrery/npu/run_context.hpp"

namespace orrery::model {

/// Returns [num_npus] the cells of pdes::Options: an NPU of this rank is in one cell with the small group with which it
/// has most collectives, or else with the NPUs next to it that have no such group. O(nodes of the distinct programs +
/// NPUs * uses of groups).
std::vector<std::uint32_t> cells_of(const npu::RunContext& run);

}  // namespace orrery::model
