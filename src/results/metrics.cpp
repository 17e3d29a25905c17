#include "orrery/results/metrics.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "format.hpp"
#include "metrics_table.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/communicator/record.hpp"
#include "orrery/npu/record.hpp"

namespace orrery::results {
namespace {

using npu::NpuRecord;
using Wide = __int128;

/// Over all NPUs, in whole picoseconds.
Wide sum_over(std::span<const NpuRecord> npus, Time NpuRecord::*part) {
  Wide sum = 0;
  for (const NpuRecord& npu : npus) sum += (npu.*part).ps();
  return sum;
}

Time nearest(Wide ps, Wide parts) { return Time::from_ps(static_cast<std::int64_t>((ps + parts / 2) / parts)); }

/// Sources: docs/results.md, /metrics.
void add_training(const TrainingStep& step, std::size_t num_npus, Metrics& metrics) {
  const double seconds = metrics.step_time.seconds();
  const auto npus = static_cast<double>(num_npus);
  metrics.samples_per_second = step.samples / seconds;
  if (step.tokens > 0) {
    metrics.tokens_per_second = step.tokens / seconds;
    metrics.tokens_per_second_per_npu = step.tokens / seconds / npus;
  }
  if (step.peak_flops > 0 && step.model_flops > 0) {
    metrics.model_flops_utilisation = step.model_flops / (seconds * npus * step.peak_flops);
    metrics.hardware_flops_utilisation = step.executed_flops / (seconds * npus * step.peak_flops);
  }
}

}  // namespace

std::vector<CollectiveTotal> totals_of(std::span<const communicator::CollectiveSum> sums) {
  std::map<std::pair<std::uint8_t, std::uint32_t>, communicator::CollectiveSum> totals;
  for (const auto& sum : sums) {
    auto& total = totals[{sum.kind, sum.members}];
    total.count += sum.count;
    total.bytes += sum.bytes;
    total.time += sum.time;
  }
  std::vector<CollectiveTotal> rows;
  for (const auto& [key, total] : totals) {
    const auto kind = static_cast<collective::Kind>(key.first);
    if (kind == collective::Kind::barrier || total.time == 0) continue;
    const double seconds = static_cast<double>(total.time) * 1e-12;
    rows.push_back({key.first, key.second, total.count, total.time,
                    static_cast<double>(format::worked_bytes(kind, key.second, total.bytes)) / seconds *
                        format::bus_factor(kind, key.second)});
  }
  return rows;
}

std::optional<Metrics> metrics_of(std::span<const NpuRecord> npus, std::span<const std::int64_t> bytes,
                                  std::uint32_t iterations, const std::optional<TrainingStep>& step,
                                  std::span<const communicator::CollectiveSum> collectives) {
  Time end;
  for (const NpuRecord& npu : npus) end = std::max(end, npu.finish);
  if (end == Time::zero()) return {};
  Metrics metrics;
  metrics.iterations = iterations;
  metrics.step_time = nearest(end.ps(), iterations);
  const auto num_npus = static_cast<Wide>(npus.size());
  const Wide whole = num_npus * end.ps();
  const auto share = [&](Wide part) { return static_cast<double>(part) / static_cast<double>(whole); };
  const Wide compute = sum_over(npus, &NpuRecord::compute);
  const Wide cpu = sum_over(npus, &NpuRecord::cpu);
  const Wide communication = sum_over(npus, &NpuRecord::exposed_communication);
  const Wide memory = sum_over(npus, &NpuRecord::exposed_memory);
  const Wide idle = whole - compute - cpu - communication - memory;  // and what follows an NPU's own end
  metrics.compute = share(compute);
  metrics.cpu = share(cpu);
  metrics.exposed_communication = share(communication);
  metrics.exposed_memory = share(memory);
  metrics.idle = share(idle);
  metrics.exposed_communication_time = nearest(communication, num_npus * iterations);
  for (const std::int64_t in_dimension : bytes) metrics.bytes_per_step.push_back(in_dimension / iterations);
  metrics.collectives = totals_of(collectives);
  if (!step) return metrics;
  if (metrics.step_time > Time::zero()) add_training(*step, npus.size(), metrics);
  if (step->stages > 1) {
    const double waits = step->stages - 1;
    metrics.pipeline_bubble = share(sum_over(npus, &NpuRecord::exposed_receive) + idle);
    metrics.ideal_pipeline_bubble = waits / (double{1} * step->interleaving * step->micro_batches + waits);
  }
  return metrics;
}

namespace {

/// A figure of a run, as a dataset of one number.
template <class T>
struct Figure {
  const char* name;
  Label label;
  T (*value)(const Metrics&);
};

constexpr const char* of_npu_time = "share of the NPUs' time, from 0 to the end of the simulation";

const Figure<Time> times[] = {
    {"step_time",
     {"ps", "step time", "simulated time over the number of iterations"},
     [](const Metrics& m) { return m.step_time; }},
    {"exposed_communication_time",
     {"ps", "exposed communication time", "of an NPU in a step, the mean over NPUs and iterations"},
     [](const Metrics& m) { return m.exposed_communication_time; }},
};

const Figure<std::optional<double>> numbers[] = {
    {"compute_share", {"1", "compute share", of_npu_time}, [](const Metrics& m) { return std::optional(m.compute); }},
    {"cpu_share", {"1", "CPU share", of_npu_time}, [](const Metrics& m) { return std::optional(m.cpu); }},
    {"exposed_communication_share",
     {"1", "exposed communication share", of_npu_time},
     [](const Metrics& m) { return std::optional(m.exposed_communication); }},
    {"exposed_memory_share",
     {"1", "exposed remote memory share", of_npu_time},
     [](const Metrics& m) { return std::optional(m.exposed_memory); }},
    {"idle_share",
     {"1", "idle share",
      "share of the NPUs' time, from 0 to the end of the simulation, in which nothing was in progress; what follows an "
      "NPU's own end counts too; with the other four shares it is 1"},
     [](const Metrics& m) { return std::optional(m.idle); }},
    {"samples_per_second",
     {"1/s", "samples per second", "samples of a step over the step time"},
     [](const Metrics& m) { return m.samples_per_second; }},
    {"tokens_per_second",
     {"1/s", "tokens per second", "tokens of a step over the step time"},
     [](const Metrics& m) { return m.tokens_per_second; }},
    {"tokens_per_second_per_npu",
     {"1/s", "tokens per second and NPU", "tokens per second over the number of NPUs"},
     [](const Metrics& m) { return m.tokens_per_second_per_npu; }},
    {"model_flops_utilisation",
     {"1", "model FLOPs utilisation (MFU)",
      "FLOPs of the model in a step, nothing counted twice, over step time, NPUs and peak of an NPU"},
     [](const Metrics& m) { return m.model_flops_utilisation; }},
    {"hardware_flops_utilisation",
     {"1", "hardware FLOPs utilisation (HFU)",
      "FLOPs that the compute nodes of a step execute, recomputation included, over step time, NPUs and peak of an "
      "NPU"},
     [](const Metrics& m) { return m.hardware_flops_utilisation; }},
    {"pipeline_bubble",
     {"1", "pipeline bubble",
      "share of the NPUs' time, from 0 to the end of the simulation, in which nothing was in progress but receives"},
     [](const Metrics& m) { return m.pipeline_bubble; }},
    {"ideal_pipeline_bubble",
     {"1", "ideal pipeline bubble",
      "(stages - 1) / (interleaving * micro-batches + stages - 1): stages that take the same time, messages that take "
      "none"},
     [](const Metrics& m) { return m.ideal_pipeline_bubble; }},
};

template <class T, class Value>
void write_column(File& file, const char* name, std::span<const CollectiveTotal> rows, const Label& label,
                  Value value) {
  const std::string path = std::string("/metrics/collectives/") + name;
  std::vector<T> column;
  for (const CollectiveTotal& row : rows) column.push_back(static_cast<T>(value(row)));
  file.column<T>(path, column, label);
  file.attach(path, "/metrics/collectives/row");
}

void write_collectives(File& file, std::span<const CollectiveTotal> rows) {
  file.group("/metrics/collectives", "one row per kind and number of members of all collectives");
  file.scale("/metrics/collectives/row", rows.size(), {"1", "row", "row of the columns"});
  write_column<std::int8_t>(file, "kind", rows, {"1", "kind", "index into the attribute values"},
                            [](const CollectiveTotal& row) { return row.kind; });
  file.attribute("/metrics/collectives/kind", "values", format::collective_kinds());
  write_column<std::uint32_t>(file, "members", rows, {"1", "members", "number of members"},
                              [](const CollectiveTotal& row) { return row.members; });
  write_column<std::uint64_t>(file, "count", rows, {"1", "count", "collectives"},
                              [](const CollectiveTotal& row) { return row.count; });
  write_column<std::int64_t>(
      file, "time", rows,
      {"ps", "time", "from the last arrival to the finish, summed over the collectives; 2^63 - 1: that or more"},
      [](const CollectiveTotal& row) { return std::min<SumOfTimes>(row.time, Time::max().ps()); });
  write_column<double>(file, "bus_bandwidth", rows,
                       {"byte/s", "bus bandwidth",
                        "bytes of all of them as nccl-tests counts them, times the factor of the kind, over that time"},
                       [](const CollectiveTotal& row) { return row.bus_bandwidth; });
}

}  // namespace

void write_metrics(File& file, const Metrics& metrics) {
  file.group("/metrics", "figures of a step of the whole run; what is not known is left out");
  for (const auto& figure : times)
    file.scalar<std::int64_t>(std::string("/metrics/") + figure.name, figure.value(metrics).ps(), figure.label);
  for (const auto& figure : numbers)
    if (const auto value = figure.value(metrics))
      file.scalar<double>(std::string("/metrics/") + figure.name, *value, figure.label);
  // A scale of this group: netCDF-4 looks for dimensions in the group of a variable and in those above it only.
  file.scale("/metrics/dimension", metrics.bytes_per_step.size(),
             {"1", "dimension", "dimension of the topology, 0 innermost"});
  file.column<std::int64_t>(
      "/metrics/bytes_per_step", metrics.bytes_per_step,
      {"byte", "bytes per step", "bytes sent by all NPUs in a step, by dimension of the topology"});
  file.attach("/metrics/bytes_per_step", "/metrics/dimension");
  if (!metrics.collectives.empty()) write_collectives(file, metrics.collectives);
}

}  // namespace orrery::results
