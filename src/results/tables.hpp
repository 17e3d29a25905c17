#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hdf5_file.hpp"
#include "orrery/results/metrics.hpp"
#include "orrery/results/results.hpp"
#include "output.hpp"

/// The groups of the file (docs/results.md), each written in a file of its own. All functions are collective.
namespace orrery::results {

/// Writes /config: what was simulated.
void write_configuration(Output& output, const RunInputs& inputs);
/// Writes texts of input files, each under the last part of its name; a number tells equal names apart. On rank 0 only.
void write_inputs(File& file, const std::string& group, const InputTexts& texts);

/// Writes /npus. Returns the records of all NPUs on rank 0.
NpuRecords write_npus(Output& output, const RunDescription& run, std::span<const npu::NpuRecord> mine);

/// Writes /jobs and /npus/job if there are jobs. `npus`: of all, on rank 0. Returns the figures of jobs on rank 0.
std::vector<JobFigures> write_jobs(Output& output, std::span<const JobDescription> jobs, const NpuRecords& npus);

/// Writes /breakdown of a complete run. `npus`: of all, and `end`, the simulated time, on rank 0.
void write_breakdown(Output& output, const RunDescription& run, const NpuRecords& npus, Time end);

/// Writes /groups in the order of names and members. Returns where each group of the run is in the file, on all ranks.
std::vector<std::uint32_t> write_groups(Output& output, const RunDescription& run);

/// Writes /collectives in the order of group and ordinal. `group_position`: as write_groups returns it.
void write_collectives(Output& output, const RankResults& mine, std::span<const std::uint32_t> group_position);

/// Writes /network. `simulated_time` counts on rank 0. Returns figures of all NPUs on rank 0.
NetworkFigures write_network(Output& output, const RunDescription& run, const NetworkRecord& mine, Time simulated_time);

/// Writes /network/links and /network/switches. Returns the records of all ranks on rank 0 in ascending link order.
std::vector<network::LinkRecord> write_links(Output& output, const NetworkDescription& network,
                                             std::span<const network::LinkRecord> mine);

/// Writes /network/flows, /network/flow_links and /network/flow_classes if messages were recorded. `group_position`: as
/// write_groups returns it.
void write_flows(Output& output, const NetworkDescription& network, const network::PacketRecords& mine,
                 std::span<const std::uint32_t> group_position);

/// Writes /network/flits if some dimensions were simulated flit by flit.
void write_flits(Output& output, const NetworkDescription& network, std::span<const network::FlitRecord> mine);

/// Writes /network/queues and /network/pauses if queues were recorded.
void write_queues(Output& output, const NetworkDescription& network, const network::PacketRecords& mine);

/// Writes /network/tcp if there were connections of TCP.
void write_connections(Output& output, const network::PacketRecords& mine);

/// Writes /network/reductions if switches of a packet network have reduced.
void write_reductions(Output& output, const network::PacketRecords& mine);

/// Writes /gpu if thread blocks carried out collectives. `group_position`: as write_groups returns it.
void write_gpu(Output& output, const RankResults& mine, std::span<const std::uint32_t> group_position);

/// Writes /memory if there is a hierarchical pool. `simulated_time` counts on rank 0.
void write_memory(Output& output, std::span<const memory::MemoryStageRecord> mine, Time simulated_time);

/// Writes /metrics of a complete run in which time has passed. `npus` and `network`: of all, on rank 0. Returns the
/// metrics on rank 0.
std::optional<Metrics> write_metrics(Output& output, const RunDescription& run, const NpuRecords& npus,
                                     const NetworkFigures& network, std::span<const communicator::CollectiveSum> mine,
                                     std::span<const LibrarySum> of_library);

/// Writes /timeline if any rank has records, and /critical_path of a complete run. `nodes_completed`: of all NPUs, on
/// rank 0. Returns what a summary tells of the critical path, on rank 0.
PathFigures write_timeline(Output& output, const RunDescription& run, const RankResults& mine,
                           std::span<const std::uint32_t> group_position, std::int64_t nodes_completed);

/// Writes /repetitions if there are several.
void write_repetitions(Output& output, std::span<const Repetition> repetitions);

/// Writes /local_memory if any rank has records.
void write_local_memory(Output& output, const RunDescription& run, std::span<const memory::UsageRecord> mine);

/// Writes /kernel. `host`: of this rank. Returns the records of all ranks on rank 0.
std::vector<KernelRecord> write_kernel(Output& output, const InputTexts& kernel_texts, const KernelRecord& mine,
                                       const std::string& host);

/// Writes /load if it was recorded, on all ranks or on none.
void write_load(Output& output, const std::optional<Load>& mine);

/// Writes the attributes of the root.
void write_attributes(Output& output, const RunDescription& run, Time simulated_time);

}  // namespace orrery::results
