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

/// Returns what the activations of a stage do not exceed, as all passes that are kept are through the chunk that keeps
/// most; nothing if no formula gives their number.
std::optional<std::uint64_t> limit_of_activations(const Parallel& parallel,
                                                  std::span<const std::span<const Layer>> assigned,
                                                  std::uint32_t stage) {
  const auto passes = most_kept(parallel, stage);
  if (!passes) return {};
  return *passes * static_cast<std::uint64_t>(std::ranges::max(activations_of_chunks(parallel, assigned, stage)));
}

std::uint64_t peak_activations(const Parallel& parallel, std::span<const std::span<const Layer>> assigned,
                               std::uint32_t stage) {
  if (parallel.is_inference()) return 0;
  const auto of_chunk = activations_of_chunks(parallel, assigned, stage);
  if (std::ranges::count(of_chunk, of_chunk.front()) == static_cast<std::ptrdiff_t>(of_chunk.size()))
    if (const auto most = most_kept(parallel, stage)) return *most * static_cast<std::uint64_t>(of_chunk.front());
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
  kept.local.activations = peak_activations(parallel, assigned, stage);
  return kept;
}

std::uint64_t most_local_memory(const Parallel& parallel, std::span<const std::span<const Layer>> assigned) {
  std::uint64_t most = 0;
  for (std::uint32_t stage = 0; stage < parallel[Axis::pp]; ++stage) {
    MemoryUses kept = model_states(parallel, layers_of_stage(parallel, assigned, stage));
    const auto limit = limit_of_activations(parallel, assigned, stage);
    if (limit && kept.local.total() + *limit <= most) continue;  // the schedule, which costs more, cannot change it
    kept.local.activations = peak_activations(parallel, assigned, stage);
    most = std::max(most, kept.local.total());
  }
  return most;
}

}  // namespace orrery::workload
