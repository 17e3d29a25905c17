#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "columns.hpp"
#include "format.hpp"
#include "orrery/results/figures.hpp"
#include "orrery/results/hints.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

/// A figure of a run, as a dataset of one number.
template <class T>
struct Figure {
  const char* name;
  Label label;
  T (*value)(const Metrics&);
};
using Number = std::optional<double>;

constexpr const char* share_of_time = "share of the NPUs' time from 0 to the end of the simulation";

constexpr const char* of_prices = "what has a price in the configuration (cost); all else counts as 0";

const std::array<Figure<Time>, 2> times{{
    {"step_time",
     {"ps", "step time", "simulated time over the number of iterations"},
     [](const Metrics& m) { return m.step_time; }},
    {"exposed_communication_time",
     {"ps", "exposed communication time",
      "exposed communication time of an NPU in a step, the mean over NPUs and iterations"},
     [](const Metrics& m) { return m.exposed_communication_time; }},
}};

/// Returns a time or a rate at an end of its interval of 80 %: times the factor for the upper end, over it for the
/// lower.
Number at_end(const Metrics& metrics, Number value, bool upper) {
  if (!metrics.certainty || !value) return {};
  return upper ? *value * metrics.certainty->factor() : *value / metrics.certainty->factor();
}

constexpr const char* lower_end = "lower end of an interval that holds the measured value with a probability of 80 %";
constexpr const char* upper_end = "upper end of an interval that holds the measured value with a probability of 80 %";

const std::array<Figure<Number>, 31> numbers{{
    {"step_time_low",
     {"s", "least step time", lower_end},
     [](const Metrics& m) { return at_end(m, m.step_time.seconds(), false); }},
    {"step_time_high",
     {"s", "largest step time", upper_end},
     [](const Metrics& m) { return at_end(m, m.step_time.seconds(), true); }},
    {"tokens_per_second_low",
     {"1/s", "least tokens per second", lower_end},
     [](const Metrics& m) { return at_end(m, m.training.tokens_per_second, false); }},
    {"tokens_per_second_high",
     {"1/s", "most tokens per second", upper_end},
     [](const Metrics& m) { return at_end(m, m.training.tokens_per_second, true); }},
    {"time_per_output_token_low",
     {"s", "least time per output token", lower_end},
     [](const Metrics& m) { return at_end(m, m.training.time_per_output_token, false); }},
    {"time_per_output_token_high",
     {"s", "largest time per output token", upper_end},
     [](const Metrics& m) { return at_end(m, m.training.time_per_output_token, true); }},
    {"prediction_deviation",
     {"1", "deviation of the prediction",
      "standard deviation of the logarithm of a measured step time over the predicted one"},
     [](const Metrics& m) { return m.certainty ? Number(m.certainty->deviation) : Number(); }},
    {"compute_share", {"1", "compute share", share_of_time}, [](const Metrics& m) { return Number(m.shares.compute); }},
    {"cpu_share", {"1", "CPU share", share_of_time}, [](const Metrics& m) { return Number(m.shares.cpu); }},
    {"exposed_communication_share",
     {"1", "exposed communication share", share_of_time},
     [](const Metrics& m) { return Number(m.shares.exposed_communication); }},
    {"exposed_memory_share",
     {"1", "exposed remote memory share", share_of_time},
     [](const Metrics& m) { return Number(m.shares.exposed_memory); }},
    {"idle_share",
     {"1", "idle share",
      "share of the NPUs' time from 0 to the end of the simulation in which nothing was in progress, with the time "
      "after an NPU's own end; the five shares add up to 1"},
     [](const Metrics& m) { return Number(m.shares.idle); }},
    {"samples_per_second",
     {"1/s", "samples per second", "samples of a step over the step time"},
     [](const Metrics& m) { return m.training.samples_per_second; }},
    {"tokens_per_second",
     {"1/s", "tokens per second", "tokens of a step over the step time"},
     [](const Metrics& m) { return m.training.tokens_per_second; }},
    {"tokens_per_second_per_npu",
     {"1/s", "tokens per second and NPU", "tokens per second over the number of NPUs"},
     [](const Metrics& m) { return m.training.tokens_per_second_per_npu; }},
    {"time_to_first_token",
     {"s", "time to the first token", "of a prefill or a request: from the prompts to the first token of each"},
     [](const Metrics& m) { return m.training.time_to_first_token; }},
    {"time_per_output_token",
     {"s", "time per output token", "of decoding or a request: from one token of each sequence to the next, the mean"},
     [](const Metrics& m) { return m.training.time_per_output_token; }},
    {"first_output_token_time",
     {"s", "time of the second token", "of a request: from the first token of each sequence to the second"},
     [](const Metrics& m) { return m.training.first_output_token; }},
    {"last_output_token_time",
     {"s", "time of the last token", "of a request: from the last token but one of each sequence to the last"},
     [](const Metrics& m) { return m.training.last_output_token; }},
    {"request_time",
     {"s", "time of a request", "from the prompts to the last token of each sequence"},
     [](const Metrics& m) { return m.training.request_time; }},
    {"model_flops_utilisation",
     {"1", "model FLOPs utilisation (MFU)",
      "FLOPs of the model in a step, without recomputation and the masked scores of causal attention, over the product "
      "of step time, NPUs and peak of an NPU"},
     [](const Metrics& m) { return m.training.model_flops_utilisation; }},
    {"hardware_flops_utilisation",
     {"1", "hardware FLOPs utilisation (HFU)",
      "FLOPs that the compute nodes of a step execute, with recomputation, over the product of step time, NPUs and "
      "peak of an NPU"},
     [](const Metrics& m) { return m.training.hardware_flops_utilisation; }},
    {"pipeline_bubble",
     {"1", "pipeline bubble",
      "share of the NPUs' time from 0 to the end of the simulation in which only receives were in progress, or "
      "nothing"},
     [](const Metrics& m) { return m.bubble ? Number(m.bubble->measured) : Number(); }},
    {"ideal_pipeline_bubble",
     {"1", "ideal pipeline bubble",
      "share of the time of the passes in which NPUs wait because of the schedule: all stages take the same time and "
      "messages take none"},
     [](const Metrics& m) { return m.bubble ? Number(m.bubble->ideal) : Number(); }},
    {"step_error",
     {"1", "error of the step", "relative standard error that the times of a library give the step time"},
     [](const Metrics& m) { return m.library ? Number(m.library->error) : Number(); }},
    {"capex", {"USD", "price of the system", of_prices}, [](const Metrics& m) { return m.cost.step.capex; }},
    {"power",
     {"W", "power of the system", "the mean over the step, times the power usage effectiveness"},
     [](const Metrics& m) { return m.cost.step.power; }},
    {"energy_per_step",
     {"J", "energy of a step", "power times time"},
     [](const Metrics& m) { return m.cost.step.energy; }},
    {"usd_per_step",
     {"USD", "price of a step", "rent; or depreciation, and electricity if it has a price"},
     [](const Metrics& m) { return m.cost.step.price; }},
    {"tokens_per_usd",
     {"1/USD", "tokens for a USD", "tokens of a step, or samples if there are no tokens, over its price"},
     [](const Metrics& m) { return m.cost.tokens_per_usd; }},
    {"tokens_per_joule",
     {"1/J", "tokens for a joule", "tokens of a step, or samples if there are no tokens, over its energy"},
     [](const Metrics& m) { return m.cost.tokens_per_joule; }},
}};

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
  for (const auto& figure : times)
    file.scalar<std::int64_t>(std::string("/metrics/") + figure.name, figure.value(metrics).ps(), figure.label);
  for (const auto& figure : numbers)
    if (const auto value = figure.value(metrics))
      file.scalar<double>(std::string("/metrics/") + figure.name, *value, figure.label);
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
  for (const auto& figure : times) names.emplace_back(figure.name);
  for (const auto& figure : numbers) names.emplace_back(figure.name);
  return names;
}

std::vector<double> figures_of(const Metrics& metrics) {
  std::vector<double> values;
  for (const auto& figure : times) values.push_back(static_cast<double>(figure.value(metrics).ps()) * 1e-12);
  for (const auto& figure : numbers)
    values.push_back(figure.value(metrics).value_or(std::numeric_limits<double>::quiet_NaN()));
  return values;
}

std::string_view units_of_figure(std::string_view name) {
  for (const auto& figure : times)
    if (name == figure.name) return "s";
  for (const auto& figure : numbers)
    if (name == figure.name) return figure.label.units;
  return {};
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
