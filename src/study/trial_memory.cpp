#include "trial_memory.hpp"

#include <cstdint>
#include <vector>

#include "orrery/workload/outline.hpp"

namespace orrery::study {
namespace {

// Measured with steps of Llama 3 70B and 405B on 1,024 and 16,384 NPUs, of 10^4 to 10^6 nodes, as what the largest
// process takes beyond 24 MB.
constexpr std::uint64_t bytes_of_any = 5'000'000;
constexpr std::uint64_t bytes_of_npu = 1000;
constexpr std::uint64_t bytes_of_node = 200;           // of a graph, which stages that are alike share
constexpr std::uint64_t bytes_of_executed_node = 170;  // of each stage

}  // namespace

Bytes memory_of_simulation(const config::Configuration& configuration) {
  const auto& generated = configuration.workload.generated;
  if (!generated || !workload::has_outline(*generated)) return Bytes();
  const auto outline = workload::outline(*generated, configuration.workload.estimates.get());
  std::vector<std::uint64_t> nodes;  // [outlines] of the whole step
  std::uint64_t bytes = bytes_of_any + generated->parallel.num_npus() * bytes_of_npu;
  for (const auto& stage : outline.outlines) {
    const std::uint64_t of_passes = stage.end_of_passes;
    nodes.push_back(of_passes * generated->parallel.micro_batches + stage.structure.graph.num_nodes() - of_passes);
    bytes += nodes.back() * bytes_of_node;
  }
  for (const auto& stage : outline.stages) bytes += nodes[stage.outline] * bytes_of_executed_node;
  return Bytes(bytes);
}

}  // namespace orrery::study
