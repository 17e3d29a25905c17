#include <algorithm>
#include <numeric>

#include "orrery/base/host.hpp"
#include "orrery/results/results.hpp"
#include "output.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

/// Notes the largest resident memory of each rank until now. Collective.
void note_peaks(std::vector<KernelRecord>& ranks, parallel::Communicator& world) {
  const std::uint64_t mine = peak_memory();
  const auto all = world.gather<std::uint64_t>(std::span(&mine, 1), Rank(0));
  for (std::size_t i = 0; i < all.size(); ++i)
    ranks[i].peak_memory_bytes = std::max(ranks[i].peak_memory_bytes, all[i]);
}

}  // namespace

Gathered write(const std::filesystem::path& path, const RunDescription& run, const RankResults& mine,
               parallel::Communicator& world) {
  Output output(path, world);
  Gathered gathered;
  write_configuration(output, run.inputs);
  gathered.npus = write_npus(output, run, mine.npus);
  Time simulated_time;
  std::int64_t nodes_completed = 0;
  gathered.npus.for_each([&](const npu::NpuRecord& npu, std::uint64_t count) {
    simulated_time = std::max(simulated_time, npu.finish);
    nodes_completed += static_cast<std::int64_t>(npu.nodes_completed * count);
  });
  gathered.jobs = write_jobs(output, run.jobs, gathered.npus);
  write_breakdown(output, run, gathered.npus, simulated_time);
  const auto group_position = write_groups(output, run);
  write_collectives(output, mine, group_position);
  const auto network = write_network(output, run, mine.network, simulated_time);
  gathered.links = write_links(output, run.network, mine.links);
  write_flits(output, run.network, mine.network.flits);
  write_flows(output, run.network, mine.packets, group_position);
  write_queues(output, run.network, mine.packets);
  write_connections(output, mine.packets);
  write_reductions(output, mine.packets);
  write_gpu(output, mine, group_position);
  write_memory(output, mine.memory, simulated_time);
  gathered.metrics = write_metrics(output, run, gathered.npus, network, mine.collective_sums, mine.library_sums);
  gathered.path = write_timeline(output, run, mine, group_position, nodes_completed);
  write_local_memory(output, run, mine.usage);
  write_repetitions(output, run.repetitions);
  gathered.ranks = write_kernel(output, run.inputs.kernel_texts, mine.kernel, mine.host);
  write_load(output, mine.load);
  write_attributes(output, run, simulated_time);
  gathered.file = output.commit(run.force);
  note_peaks(gathered.ranks, world);
  return gathered;
}

}  // namespace orrery::results
