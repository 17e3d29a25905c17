#include "kept_memory.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "schedule.hpp"
#include "step.hpp"

namespace orrery::workload {
namespace {

/// Returns what a pass through each chunk of a stage keeps. [chunks]
std::vector<std::int64_t> activations_of_chunks(const Parallel& parallel,
                                                std::span<const std::span<const Layer>> assigned, std::uint32_t stage) {
  std::vector<std::int64_t> of_chunk(parallel.num_chunks());
  for (std::uint32_t chunk = 0; chunk < of_chunk.size(); ++chunk)
    for (const Layer& layer : assigned[parallel.virtual_stage(stage, chunk)])
      of_chunk[chunk] += static_cast<std::int64_t>(layer.activations);
  return of_chunk;
}

/// Returns what the activations of a stage do not exceed, as if all passes that are kept were through the chunk that
/// keeps most; nothing if no formula gives their number. `of_chunk`: what activations_of_chunks returns.
std::optional<std::uint64_t> limit_of_activations(const Parallel& parallel, std::span<const std::int64_t> of_chunk,
                                                  std::uint32_t stage) {
  const auto passes = most_kept(parallel, stage);
  if (!passes) return {};
  return *passes * static_cast<std::uint64_t>(std::ranges::max(of_chunk));
}

std::uint64_t peak_activations(const Parallel& parallel, std::span<const std::int64_t> of_chunk, std::uint32_t stage) {
  if (parallel.is_inference()) return 0;
  if (std::ranges::min(of_chunk) == std::ranges::max(of_chunk))
    if (const auto limit = limit_of_activations(parallel, of_chunk, stage)) return *limit;
  std::int64_t kept = 0, peak = 0;
  for (const Pass& pass : passes_of(with_fewer_micro_batches(parallel), stage)) {
    if (pass.is_forward())
      kept += of_chunk[pass.chunk];
    else if (pass.makes_weight_gradients())
      kept -= of_chunk[pass.chunk];
    peak = std::max(peak, kept);
  }
  return static_cast<std::uint64_t>(peak);
}

}  // namespace

MemoryUses memory_of(const Parallel& parallel, std::span<const std::span<const Layer>> assigned, std::uint32_t stage) {
  MemoryUses kept = model_states(parallel, layers_of_stage(parallel, assigned, stage));
  kept.local.activations = peak_activations(parallel, activations_of_chunks(parallel, assigned, stage), stage);
  return kept;
}

std::uint64_t most_local_memory(const Parallel& parallel, std::span<const std::span<const Layer>> assigned) {
  std::uint64_t most = 0;
  for (std::uint32_t stage = 0; stage < parallel[Axis::pp]; ++stage) {
    MemoryUses kept = model_states(parallel, layers_of_stage(parallel, assigned, stage));
    const auto of_chunk = activations_of_chunks(parallel, assigned, stage);
    const auto limit = limit_of_activations(parallel, of_chunk, stage);
    if (limit && kept.local.total() + *limit <= most) continue;  // the schedule, which costs more, cannot change it
    kept.local.activations = peak_activations(parallel, of_chunk, stage);
    most = std::max(most, kept.local.total());
  }
  return most;
}

}  // namespace orrery::workload
