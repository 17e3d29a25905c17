#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/pdes/load_recorder.hpp"
#include "orrery/pdes/scheduler.hpp"

namespace orrery::model {

/// Returns [NPUs] the block of each, as a rank, if the NPUs are cut into contiguous blocks: block floor(i B / N) has
/// NPU i of N.
std::vector<Rank> blocks_of_npus(std::uint32_t num_npus, std::uint32_t num_blocks);

/// Returns where logical processes belong if the NPUs are cut into so many blocks.
/// `kernel`: the one that the model works with. O(logical processes + members of communicators).
pdes::LoadPlaces load_places(const npu::RunContext& run, std::uint32_t num_blocks, pdes::Scheduler& kernel);

}  // namespace orrery::model
