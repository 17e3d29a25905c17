#pragma once

#include <cstdint>
#include <span>

#include "layer.hpp"
#include "model_states.hpp"

namespace orrery::workload {

/// Returns what an NPU of the stage keeps, with activations at their peak. `assigned` is what `assign_layers` returns.
/// O(layers of the stage + its passes).
MemoryUses memory_of(const Parallel& parallel, std::span<const std::span<const Layer>> assigned, std::uint32_t stage);

/// Returns what the NPU of the stage that needs most keeps in local memory. O(layers + passes of all stages).
std::uint64_t most_local_memory(const Parallel& parallel, std::span<const std::span<const Layer>> assigned);

}  // namespace orrery::workload
