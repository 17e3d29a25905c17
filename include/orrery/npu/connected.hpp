#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/npu/spec.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::npu {

/// Returns [num_npus] the position of each NPU, by ids, among the NPUs with which messages connect it, directly or
/// through others. `npus`: those of this rank; each message is in the traces of both sides. Collective. O(NPUs + pairs
/// of NPUs that exchange messages).
std::vector<std::uint32_t> positions_among_connected(std::span<const NpuSpec> npus, std::uint32_t num_npus,
                                                     parallel::Communicator& world);

}  // namespace orrery::npu
