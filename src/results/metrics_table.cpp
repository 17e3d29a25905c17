#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "columns.hpp"
#include "format.hpp"
#include "orrery/results/figures.hpp"
#include "orrery/results/hints.hpp"
#include "orrery/results/metric_registry.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

const std::array<Column<CollectiveTotal>, 5> collective_columns_of_metrics{{
    {"kind",
     {"1", "kind", "index into the attribute values"},
     [](const CollectiveTotal& row) { return static_cast<std::int8_t>(row.kind); },
     format::collective_kinds},
    {"members", {"1", "members", "number of members"}, [](const CollectiveTotal& row) { return row.members; }},
    {"count", {"1", "count", "number of collectives"}, [](const CollectiveTotal& row) { return row.count; }},
    {"time",
     {"ps", "time", "time from the last arrival to the finish, summed over the collectives; 2^63 - 1: that or more"},
     [](const CollectiveTotal& row) {
       return static_cast<std::int64_t>(std::min<SumOfTimes>(row.time, Time::max().ps()));
     }},
    {"bus_bandwidth",
     {"byte/s", "bus bandwidth",
      "bytes of all of them as nccl-tests counts them, times the factor of the kind, over that time"},
     [](const CollectiveTotal& row) { return row.bus_bandwidth; }},
}};

void write_library_effects(File& file, const LibraryEffects& effects) {
  file.column<double>("/metrics/more_bandwidth", effects.more_bandwidth,
                      {"1", "more bandwidth", "share of the step time that 10 % more bandwidth of a dimension saves"});
  file.attach("/metrics/more_bandwidth", "/metrics/dimension");
  std::vector<std::string> names;
  std::vector<double> shares;
  for (const auto& [name, share] : effects.bounds) {
    names.push_back(name);
    shares.push_back(share);
  }
  if (names.empty()) return;
  file.scale("/metrics/bound", names.size(), {"1", "bound", "number of the resource"});
  file.strings("/metrics/bound_names", names, {"1", "name", "resources that bind collectives"});
  file.attach("/metrics/bound_names", "/metrics/bound");
  file.column<double>("/metrics/bound_shares", shares,
                      {"1", "share", "share of the exposed time of collectives that the resource binds"});
  file.attach("/metrics/bound_shares", "/metrics/bound");
}

void write_figures(File& file, const Metrics& metrics) {
  file.group("/metrics", "figures of a training step; what is not known is left out");
  for (const MetricInfo& metric : metric_registry()) {
    if (metric.column.empty()) continue;
    const std::string path = fmt::format("/metrics/{}", metric.column);
    if (metric.time != nullptr)
      file.scalar<std::int64_t>(path, metric.time(metrics).ps(), {"ps", metric.label, metric.text});
    else if (const auto value = metric.of_step({metrics, {}}))
      file.scalar<double>(path, *value, {metric.units.data(), metric.label, metric.text});
  }
  if (metrics.certainty) file.attribute("/metrics", "basis", metrics.certainty->basis);
  std::vector<std::string> names;
  for (std::size_t part = 0; part < num_breakdown_parts; ++part) names.emplace_back(breakdown_name(part));
  file.scale("/metrics/part", names.size(), {"1", "part", "part of the breakdown"});
  file.strings("/metrics/breakdown_names", names, {"1", "name", "names of the columns of /breakdown"});
  file.attach("/metrics/breakdown_names", "/metrics/part");
  file.column<double>("/metrics/breakdown", metrics.breakdown,
                      {"1", "breakdown", "share of each part in the time of all NPUs; they add up to 1"});
  file.attach("/metrics/breakdown", "/metrics/part");
  // The scale is in this group: netCDF-4 looks for dimensions in the group of a variable and in those above it only.
  file.scale("/metrics/dimension", metrics.bytes_per_step.size(),
             {"1", "dimension", "dimension of the topology, 0 innermost"});
  file.column<std::int64_t>(
      "/metrics/bytes_per_step", metrics.bytes_per_step,
      {"byte", "bytes per step", "bytes sent by all NPUs in a step, by dimension of the topology"});
  file.attach("/metrics/bytes_per_step", "/metrics/dimension");
  if (metrics.library) write_library_effects(file, *metrics.library);
  if (!metrics.hints.empty()) {
    file.scale("/metrics/hint", metrics.hints.size(), {"1", "hint", "number of the hint"});
    file.strings("/metrics/hints", metrics.hints, {"1", "hint", "what may make the step shorter"});
    file.attach("/metrics/hints", "/metrics/hint");
  }
  if (metrics.collectives.empty()) return;
  file.group("/metrics/collectives", "one row per kind and number of members of all collectives");
  write_table(file, "/metrics/collectives", collective_columns_of_metrics, "row", {"1", "row", "row of the columns"},
              std::span<const CollectiveTotal>(metrics.collectives));
}

}  // namespace

std::vector<std::string_view> figure_names() {
  std::vector<std::string_view> names;
  for (const MetricInfo& metric : metric_registry())
    if (!metric.column.empty()) names.push_back(metric.column);
  return names;
}

std::vector<double> figures_of(const Metrics& metrics) {
  std::vector<double> values;
  for (const MetricInfo& metric : metric_registry())
    if (!metric.column.empty()) values.push_back(value_of(metric, {metrics, {}}));
  return values;
}

std::string_view units_of_figure(std::string_view name) {
  const auto all = metric_registry();
  const auto found = std::ranges::find(all, name, &MetricInfo::column);
  return name.empty() || found == all.end() ? std::string_view() : found->units;
}

std::optional<Metrics> write_metrics(Output& output, const RunDescription& run, const NpuRecords& npus,
                                     const NetworkFigures& network, std::span<const communicator::CollectiveSum> mine,
                                     std::span<const LibrarySum> of_library) {
  const auto collectives = output.world().gather(mine, Rank(0));
  const auto library = output.world().gather(of_library, Rank(0));
  std::optional<Metrics> metrics;
  output.on_root([&](File& file) {
    if (run.status != Status::complete) return;
    metrics = metrics_of(npus, network, run.iterations, run.step, collectives);
    if (!metrics) return;
    metrics->library = library_effects(library, metrics->breakdown, metrics->bytes_per_step.size());
    metrics->hints = hints_of(*metrics, run, npus);
    if (run.hardware) add_cost(*run.hardware, *metrics);
    write_figures(file, *metrics);
  });
  return metrics;
}

}  // namespace orrery::results
