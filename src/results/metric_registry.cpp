#include "orrery/results/metric_registry.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/results/metrics.hpp"
#include "orrery/serving/metrics.hpp"

namespace orrery::results {
namespace {

using Number = std::optional<double>;
using Origin = MetricInfo::Origin;

constexpr const char* share_of_time = "share of the NPUs' time from 0 to the end of the simulation";

constexpr const char* of_prices = "what has a price in the configuration (cost); all else counts as 0";

/// Returns a time or a rate at an end of its interval of 80 %: times the factor for the upper end, over it for the
/// lower.
Number at_end(const Metrics& metrics, Number value, bool upper) {
  if (!metrics.certainty || !value) return {};
  return upper ? *value * metrics.certainty->factor() : *value / metrics.certainty->factor();
}

constexpr const char* lower_end = "lower end of an interval that holds the measured value with a probability of 80 %";
constexpr const char* upper_end = "upper end of an interval that holds the measured value with a probability of 80 %";

/// Returns a metric of requests that are served. `value` is null for what a search finds (`max_rate`).
constexpr MetricInfo of_requests(std::string_view name, std::string_view units, std::string_view description,
                                 double (*value)(const serving::Metrics&), Better better = Better::less) {
  return {.name = name,
          .units = units,
          .description = description,
          .better = better,
          .origin = Origin::serving,
          .of_serving = value};
}

/// Returns a metric of a campaign or of a cluster over time, whose value these simulations give by name.
constexpr MetricInfo over_time(Origin origin, std::string_view name, std::string_view units,
                               std::string_view description, Better better = Better::less, bool needs_prices = false) {
  return {.name = name,
          .units = units,
          .description = description,
          .better = better,
          .needs_prices = needs_prices,
          .origin = origin};
}

// A metric is one entry: studies, tables, /metrics of results, the Python package and the documents take it from here
// (scripts/update_key_tables.py). The metrics of studies come first.
constexpr MetricInfo all_metrics[] = {
    {.name = "step_time",
     .column = "step_time",
     .units = "s",
     .title = "step time",
     .description = "time of a step",
     .label = "step time",
     .text = "simulated time over the number of iterations",
     .place = 1,
     .time = [](const Metrics& m) { return m.step_time; }},
    {.name = "tokens_per_s",
     .column = "tokens_per_second",
     .units = "1/s",
     .title = "tokens/s",
     .description = "tokens of all replicas in a second",
     .label = "tokens per second",
     .text = "tokens of a step over the step time",
     .better = Better::more,
     .place = 2,
     .of_step = [](const StepFigures& s) { return s.metrics.training.tokens_per_second; }},
    {.name = "samples_per_s",
     .column = "samples_per_second",
     .units = "1/s",
     .title = "samples/s",
     .description = "samples of all replicas in a second",
     .label = "samples per second",
     .text = "samples of a step over the step time",
     .better = Better::more,
     .place = 3,
     .of_step = [](const StepFigures& s) { return s.metrics.training.samples_per_second; }},
    {.name = "mfu",
     .column = "model_flops_utilisation",
     .units = "1",
     .title = "MFU",
     .description = "model FLOPs utilisation",
     .label = "model FLOPs utilisation (MFU)",
     .text = "FLOPs of the model in a step, without recomputation and the masked scores of causal attention, over the "
             "product of step time, NPUs and peak of an NPU",
     .better = Better::more,
     .is_share = true,
     .place = 4,
     .of_step = [](const StepFigures& s) { return s.metrics.training.model_flops_utilisation; }},
    {.name = "hfu",
     .column = "hardware_flops_utilisation",
     .units = "1",
     .title = "HFU",
     .description = "hardware FLOPs utilisation",
     .label = "hardware FLOPs utilisation (HFU)",
     .text = "FLOPs that the compute nodes of a step execute, with recomputation, over the product of step time, NPUs "
             "and peak of an NPU",
     .better = Better::more,
     .is_share = true,
     .place = 5,
     .of_step = [](const StepFigures& s) { return s.metrics.training.hardware_flops_utilisation; }},
    {.name = "compute",
     .column = "compute_share",
     .units = "1",
     .description = "share of the NPUs' time in which they compute",
     .label = "compute share",
     .text = share_of_time,
     .better = Better::more,
     .is_share = true,
     .place = 7,
     .of_step = [](const StepFigures& s) { return Number(s.metrics.shares.compute); }},
    {.name = "exposed_communication",
     .column = "exposed_communication_share",
     .units = "1",
     .title = "exposed communication",
     .description = "share of the NPUs' time in which they only communicate",
     .label = "exposed communication share",
     .text = share_of_time,
     .is_share = true,
     .place = 8,
     .of_step = [](const StepFigures& s) { return Number(s.metrics.shares.exposed_communication); }},
    {.name = "idle",
     .column = "idle_share",
     .units = "1",
     .description = "share of the NPUs' time in which they do nothing",
     .label = "idle share",
     .text = "share of the NPUs' time from 0 to the end of the simulation in which nothing was in progress, with the "
             "time after an NPU's own end; the five shares add up to 1",
     .is_share = true,
     .place = 10,
     .of_step = [](const StepFigures& s) { return Number(s.metrics.shares.idle); }},
    {.name = "bubble",
     .column = "pipeline_bubble",
     .units = "1",
     .title = "pipeline bubble",
     .description = "share of the NPUs' time that they wait for the pipeline",
     .label = "pipeline bubble",
     .text = "share of the NPUs' time from 0 to the end of the simulation in which only receives were in progress, or "
             "nothing",
     .is_share = true,
     .place = 9,
     .of_step = [](const StepFigures& s) { return s.metrics.bubble ? Number(s.metrics.bubble->measured) : Number(); }},
    {.name = "peak_memory",
     .units = "byte",
     .title = "peak memory",
     .description = "largest use of the local memory of an NPU",
     .place = 6,
     .of_step = [](const StepFigures& s) { return Number(static_cast<double>(s.peak_memory.count())); }},
    {.name = "capex",
     .column = "capex",
     .units = "USD",
     .title = "system price",
     .description = "price of the system",
     .label = "price of the system",
     .text = of_prices,
     .needs_prices = true,
     .place = 13,
     .of_step = [](const StepFigures& s) { return s.metrics.cost.step.capex; }},
    {.name = "power",
     .column = "power",
     .units = "W",
     .title = "power",
     .description = "power of the system, the mean over the step",
     .label = "power of the system",
     .text = "the mean over the step, times the power usage effectiveness",
     .needs_prices = true,
     .place = 14,
     .of_step = [](const StepFigures& s) { return s.metrics.cost.step.power; }},
    {.name = "energy_per_step",
     .column = "energy_per_step",
     .units = "J",
     .title = "step energy",
     .description = "energy of a step",
     .label = "energy of a step",
     .text = "power times time",
     .needs_prices = true,
     .place = 15,
     .of_step = [](const StepFigures& s) { return s.metrics.cost.step.energy; }},
    {.name = "usd_per_step",
     .column = "usd_per_step",
     .units = "USD",
     .title = "step price",
     .description = "price of a step",
     .label = "price of a step",
     .text = "rent; or depreciation, and electricity if it has a price",
     .needs_prices = true,
     .place = 11,
     .of_step = [](const StepFigures& s) { return s.metrics.cost.step.price; }},
    {.name = "tokens_per_usd",
     .column = "tokens_per_usd",
     .units = "1/USD",
     .title = "tokens/USD",
     .description = "tokens for a USD",
     .label = "tokens for a USD",
     .text = "tokens of a step, or samples if there are no tokens, over its price",
     .better = Better::more,
     .needs_prices = true,
     .place = 12,
     .of_step = [](const StepFigures& s) { return s.metrics.cost.tokens_per_usd; }},
    {.name = "tokens_per_j",
     .column = "tokens_per_joule",
     .units = "1/J",
     .title = "tokens/J",
     .description = "tokens for a joule",
     .label = "tokens for a joule",
     .text = "tokens of a step, or samples if there are no tokens, over its energy",
     .better = Better::more,
     .needs_prices = true,
     .place = 16,
     .of_step = [](const StepFigures& s) { return s.metrics.cost.tokens_per_joule; }},
    over_time(Origin::campaign, "ettr", "1", "effective training time ratio of the campaign", Better::more),
    over_time(Origin::campaign, "goodput", "1", "useful over allocated host time of the campaign", Better::more),
    over_time(Origin::campaign, "effective_tokens_per_s", "1/s", "tokens of the campaign in a second of its wall time",
              Better::more),
    over_time(Origin::campaign, "lost_npu_hours", "1", "NPU-hours of the campaign that were not useful"),
    over_time(Origin::campaign, "campaign_time", "s", "wall time of the campaign"),
    over_time(Origin::campaign, "campaign_cost", "USD", "price of the campaign, standbys included", Better::less, true),
    over_time(Origin::campaign, "campaign_energy", "J", "energy of the campaign, standbys included", Better::less,
              true),
    over_time(Origin::cluster, "job_wait", "s", "time from arrival to first start of the jobs of a cluster, mean"),
    over_time(Origin::cluster, "job_wait_p95", "s", "time from arrival to first start, quantile of 95 %"),
    over_time(Origin::cluster, "jct", "s", "time from arrival to end of the jobs of a cluster, mean"),
    over_time(Origin::cluster, "jct_p95", "s", "time from arrival to end, quantile of 95 %"),
    over_time(Origin::cluster, "job_slowdown", "1", "time from the first start of jobs over that alone"),
    over_time(Origin::cluster, "cluster_utilisation", "1", "NPU-time of jobs over that of the cluster", Better::more),
    over_time(Origin::cluster, "cluster_fragmentation", "1",
              "free NPU-time while the first job of the queue has NPUs but no place"),
    over_time(Origin::cluster, "cluster_makespan", "s", "time from the first arrival to the last end"),
    of_requests("ttft_mean", "s", "time to the first token: mean",
                [](const serving::Metrics& m) { return m.ttft.mean * 1e-12; }),
    of_requests("ttft_p50", "s", "time to the first token: median",
                [](const serving::Metrics& m) { return m.ttft.p50 * 1e-12; }),
    of_requests("ttft_p90", "s", "time to the first token: 90th percentile",
                [](const serving::Metrics& m) { return m.ttft.p90 * 1e-12; }),
    of_requests("ttft_p99", "s", "time to the first token: 99th percentile",
                [](const serving::Metrics& m) { return m.ttft.p99 * 1e-12; }),
    of_requests("tpot_mean", "s", "time per output token: mean",
                [](const serving::Metrics& m) { return m.tpot.mean * 1e-12; }),
    of_requests("tpot_p50", "s", "time per output token: median",
                [](const serving::Metrics& m) { return m.tpot.p50 * 1e-12; }),
    of_requests("tpot_p90", "s", "time per output token: 90th percentile",
                [](const serving::Metrics& m) { return m.tpot.p90 * 1e-12; }),
    of_requests("tpot_p99", "s", "time per output token: 99th percentile",
                [](const serving::Metrics& m) { return m.tpot.p99 * 1e-12; }),
    of_requests("itl_mean", "s", "time between two tokens: mean",
                [](const serving::Metrics& m) { return m.itl.mean * 1e-12; }),
    of_requests("itl_p50", "s", "time between two tokens: median",
                [](const serving::Metrics& m) { return m.itl.p50 * 1e-12; }),
    of_requests("itl_p90", "s", "time between two tokens: 90th percentile",
                [](const serving::Metrics& m) { return m.itl.p90 * 1e-12; }),
    of_requests("itl_p99", "s", "time between two tokens: 99th percentile",
                [](const serving::Metrics& m) { return m.itl.p99 * 1e-12; }),
    of_requests("latency_mean", "s", "time from arrival to the last token: mean",
                [](const serving::Metrics& m) { return m.latency.mean * 1e-12; }),
    of_requests("latency_p50", "s", "time from arrival to the last token: median",
                [](const serving::Metrics& m) { return m.latency.p50 * 1e-12; }),
    of_requests("latency_p90", "s", "time from arrival to the last token: 90th percentile",
                [](const serving::Metrics& m) { return m.latency.p90 * 1e-12; }),
    of_requests("latency_p99", "s", "time from arrival to the last token: 99th percentile",
                [](const serving::Metrics& m) { return m.latency.p99 * 1e-12; }),
    of_requests(
        "requests_per_s", "1/s", "requests that are served in a second",
        [](const serving::Metrics& m) { return m.requests_per_s; }, Better::more),
    of_requests(
        "output_tokens_per_s", "1/s", "output tokens of all requests in a second",
        [](const serving::Metrics& m) { return m.output_tokens_per_s; }, Better::more),
    of_requests(
        "output_tokens_per_s_per_npu", "1/s", "output tokens of an NPU in a second",
        [](const serving::Metrics& m) { return m.output_tokens_per_s / m.npus; }, Better::more),
    of_requests(
        "slo_attainment", "1", "share of requests that meet the SLO",
        [](const serving::Metrics& m) { return m.slo_attainment; }, Better::more),
    of_requests(
        "slo_goodput", "1/s", "requests in a second that meet the SLO",
        [](const serving::Metrics& m) { return m.goodput; }, Better::more),
    of_requests(
        "slo_goodput_per_npu", "1/s", "requests of an NPU in a second that meet the SLO",
        [](const serving::Metrics& m) { return m.goodput / m.npus; }, Better::more),
    of_requests("kv_use", "1", "share of KV blocks in use, the mean over time",
                [](const serving::Metrics& m) { return m.kv_use_mean; }),
    of_requests(
        "prefix_hit_share", "1", "share of the prompts' tokens that prefix caches have",
        [](const serving::Metrics& m) { return m.prefix_hit_share; }, Better::more),
    of_requests("preemptions", "1", "requests that gave up their blocks",
                [](const serving::Metrics& m) { return static_cast<double>(m.preemptions); }),
    of_requests("max_rate", "1/s", "highest rate of requests at which enough of them meet the SLO", nullptr,
                Better::more),
    of_requests("max_rate_per_npu", "1/s", "highest rate of requests for each NPU", nullptr, Better::more),
    {.name = "lower_bound",
     .units = "s",
     .title = "step time bound",
     .description = "bound of the time of a step, without a simulation; 0: not known",
     .origin = Origin::bound,
     .place = 17},
    // Figures of results that studies know by their path only.
    {.column = "exposed_communication_time",
     .units = "s",
     .label = "exposed communication time",
     .text = "exposed communication time of an NPU in a step, the mean over NPUs and iterations",
     .time = [](const Metrics& m) { return m.exposed_communication_time; }},
    {.column = "step_time_low",
     .units = "s",
     .label = "least step time",
     .text = lower_end,
     .of_step = [](const StepFigures& s) { return at_end(s.metrics, s.metrics.step_time.seconds(), false); }},
    {.column = "step_time_high",
     .units = "s",
     .label = "largest step time",
     .text = upper_end,
     .of_step = [](const StepFigures& s) { return at_end(s.metrics, s.metrics.step_time.seconds(), true); }},
    {.column = "tokens_per_second_low",
     .units = "1/s",
     .label = "least tokens per second",
     .text = lower_end,
     .of_step = [](const StepFigures& s) { return at_end(s.metrics, s.metrics.training.tokens_per_second, false); }},
    {.column = "tokens_per_second_high",
     .units = "1/s",
     .label = "most tokens per second",
     .text = upper_end,
     .of_step = [](const StepFigures& s) { return at_end(s.metrics, s.metrics.training.tokens_per_second, true); }},
    {.column = "time_per_output_token_low",
     .units = "s",
     .label = "least time per output token",
     .text = lower_end,
     .of_step =
         [](const StepFigures& s) { return at_end(s.metrics, s.metrics.training.time_per_output_token, false); }},
    {.column = "time_per_output_token_high",
     .units = "s",
     .label = "largest time per output token",
     .text = upper_end,
     .of_step = [](const StepFigures& s) { return at_end(s.metrics, s.metrics.training.time_per_output_token, true); }},
    {.column = "prediction_deviation",
     .units = "1",
     .label = "deviation of the prediction",
     .text = "standard deviation of the logarithm of a measured step time over the predicted one",
     .of_step =
         [](const StepFigures& s) { return s.metrics.certainty ? Number(s.metrics.certainty->deviation) : Number(); }},
    {.column = "cpu_share",
     .units = "1",
     .label = "CPU share",
     .text = share_of_time,
     .of_step = [](const StepFigures& s) { return Number(s.metrics.shares.cpu); }},
    {.column = "exposed_memory_share",
     .units = "1",
     .label = "exposed remote memory share",
     .text = share_of_time,
     .of_step = [](const StepFigures& s) { return Number(s.metrics.shares.exposed_memory); }},
    {.column = "tokens_per_second_per_npu",
     .units = "1/s",
     .label = "tokens per second and NPU",
     .text = "tokens per second over the number of NPUs",
     .of_step = [](const StepFigures& s) { return s.metrics.training.tokens_per_second_per_npu; }},
    {.column = "time_to_first_token",
     .units = "s",
     .label = "time to the first token",
     .text = "of a prefill or a request: from the prompts to the first token of each",
     .of_step = [](const StepFigures& s) { return s.metrics.training.time_to_first_token; }},
    {.column = "time_per_output_token",
     .units = "s",
     .label = "time per output token",
     .text = "of decoding or a request: from one token of each sequence to the next, the mean",
     .of_step = [](const StepFigures& s) { return s.metrics.training.time_per_output_token; }},
    {.column = "first_output_token_time",
     .units = "s",
     .label = "time of the second token",
     .text = "of a request: from the first token of each sequence to the second",
     .of_step = [](const StepFigures& s) { return s.metrics.training.first_output_token; }},
    {.column = "last_output_token_time",
     .units = "s",
     .label = "time of the last token",
     .text = "of a request: from the last token but one of each sequence to the last",
     .of_step = [](const StepFigures& s) { return s.metrics.training.last_output_token; }},
    {.column = "request_time",
     .units = "s",
     .label = "time of a request",
     .text = "from the prompts to the last token of each sequence",
     .of_step = [](const StepFigures& s) { return s.metrics.training.request_time; }},
    {.column = "ideal_pipeline_bubble",
     .units = "1",
     .label = "ideal pipeline bubble",
     .text = "share of the time of the passes in which NPUs wait because of the schedule: all stages take the same "
             "time and messages take none",
     .of_step = [](const StepFigures& s) { return s.metrics.bubble ? Number(s.metrics.bubble->ideal) : Number(); }},
    {.column = "step_error",
     .units = "1",
     .label = "error of the step",
     .text = "relative standard error that the times of a library give the step time",
     .of_step = [](const StepFigures& s) { return s.metrics.library ? Number(s.metrics.library->error) : Number(); }},
};

bool is_of_studies(const MetricInfo& metric) { return !metric.name.empty() && metric.origin != Origin::bound; }

}  // namespace

std::span<const MetricInfo> metric_registry() { return all_metrics; }

std::span<const MetricInfo> study_metrics() {
  static const auto count = static_cast<std::size_t>(std::ranges::count_if(all_metrics, is_of_studies));
  return std::span(all_metrics).first(count);
}

const MetricInfo* find_metric(std::string_view name) {
  const auto* const found = std::ranges::find(all_metrics, name, &MetricInfo::name);
  return name.empty() || found == std::end(all_metrics) ? nullptr : found;
}

double value_of(const MetricInfo& metric, const StepFigures& step) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  if (metric.time != nullptr) return static_cast<double>(metric.time(step.metrics).ps()) * 1e-12;
  return metric.of_step == nullptr ? unknown : metric.of_step(step).value_or(unknown);
}

}  // namespace orrery::results
