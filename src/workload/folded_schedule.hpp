#pragma once

#include <cstdint>
#include <vector>

#include "schedule.hpp"

namespace orrery::workload {

/// Returns the passes of each stage with ZB-V (Qi et al., ICLR 2024, section 6; building blocks: Qi et al., arXiv
/// 2405.15362). Chunk 0 goes down the stages and chunk 1 back up. A list schedule in which each pass takes one unit of
/// time; a stage keeps the activations of at most 2 `stages` passes, as many as the first stage of 1F1B keeps.
/// [stages] O(passes of all stages).
std::vector<std::vector<Pass>> folded_passes(std::uint32_t stages, std::uint32_t micro_batches);

}  // namespace orrery::workload
