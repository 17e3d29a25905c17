#pragma once

#include <cstdint>
#include <vector>

#include "schedule.hpp"

namespace orrery::workload {

/// Returns the passes of a stage with DualPipe (DeepSeek-V3, arXiv 2412.19437, section 3.2.1). Chunk 0 carries the
/// first half of the micro-batches from stage 0 on, chunk 1 the second half from the last stage on. A forward and a
/// backward pass that DeepSeek overlaps are a pair here. `stages` and `micro_batches` are even, and there are twice as
/// many micro-batches as stages or more. O(passes).
std::vector<Pass> mirrored_passes(std::uint32_t stages, std::uint32_t micro_batches, std::uint32_t stage);

}  // namespace orrery::workload
