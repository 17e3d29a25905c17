#include "kept_memory.hpp"

#include <algorithm>
#include <vector>

#include "schedule.hpp"
#include "step.hpp"

namespace orrery::workload {
namespace {

std::uint64_t peak_activations(const Parallel& parallel, std::span<const std::span<const Layer>> assigned,
                               std::uint32_t stage) {
  if (parallel.is_inference()) return 0;
  std::vector<std::int64_t> of_chunk(parallel.num_chunks());
  for (std::uint32_t chunk = 0; chunk < of_chunk.size(); ++chunk)
    for (const Layer& layer : assigned[parallel.virtual_stage(stage, chunk)])
      of_chunk[chunk] += static_cast<std::int64_t>(layer.activations);
  if (of_chunk.size() == 1)
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
  for (std::uint32_t stage = 0; stage < parallel[Axis::pp]; ++stage)
    most = std::max(most, memory_of(parallel, assigned, stage).local.total());
  return most;
}

}  // namespace orrery::workload
