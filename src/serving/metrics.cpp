#include "orrery/serving/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::serving {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Returns figures of values, which it sorts.
TimeFigures figures_of_values(std::vector<double>& values) {
  if (values.empty()) return {nan, nan, nan, nan, nan};
  TimeFigures figures;
  double sum = 0;
  for (const double value : values) sum += value;
  figures.mean = sum / static_cast<double>(values.size());
  std::ranges::sort(values);
  const auto quantile = [&](double q) {
    const double x = static_cast<double>(values.size() - 1) * q;
    const auto i = static_cast<std::size_t>(x);
    return i + 1 >= values.size() ? values[i] : values[i] + (values[i + 1] - values[i]) * (x - static_cast<double>(i));
  };
  figures.p50 = quantile(0.5);
  figures.p90 = quantile(0.9);
  figures.p95 = quantile(0.95);
  figures.p99 = quantile(0.99);
  return figures;
}

/// Returns percentiles by a histogram. The mean is that of the sums of requests, and so exact.
TimeFigures figures_of_gaps(const TokenGaps& gaps, const Scenario& scenario, const Results& results,
                            const Window& measure) {
  double sum = 0, count = 0;
  for (const RequestRecord& record : results.requests) {
    if (!measure.holds(record.arrival)) continue;
    sum += static_cast<double>((record.last - record.first).ps());
    count += scenario.requests[record.id].output - 1.0;
  }
  if (count == 0) return {nan, nan, nan, nan, nan};
  TimeFigures figures{.mean = sum / count};
  std::int64_t all = 0;
  for (const std::int64_t each : gaps.counts()) all += each;
  const auto quantile = [&](double q) {
    const auto position = static_cast<std::int64_t>(static_cast<double>(all - 1) * q);
    std::int64_t before = 0;
    for (std::size_t bin = 0; bin < TokenGaps::num_bins; ++bin) {
      before += gaps.counts()[bin];
      if (before > position) return TokenGaps::middle_of(bin);
    }
    return nan;
  };
  figures.p50 = quantile(0.5);
  figures.p90 = quantile(0.9);
  figures.p95 = quantile(0.95);
  figures.p99 = quantile(0.99);
  return figures;
}

double wide(std::uint64_t high, std::uint64_t low) {
  return std::ldexp(static_cast<double>(high), 64) + static_cast<double>(low);
}

void add_instances(const Results& results, Metrics& metrics) {
  double use = 0, running = 0, waiting = 0;
  for (const InstanceRecord& record : results.instances) {
    if (record.blocks > 0) use += wide(record.used_sum_high, record.used_sum_low) / record.blocks;
    running += wide(record.running_sum_high, record.running_sum_low);
    waiting += wide(record.waiting_sum_high, record.waiting_sum_low);
    metrics.preemptions += record.preemptions;
  }
  const double whole = static_cast<double>(results.end.ps()) * static_cast<double>(results.instances.size());
  if (whole == 0) return;
  metrics.kv_use_mean = use / whole;
  metrics.running_mean = running / whole;
  metrics.waiting_mean = waiting / whole;
}

}  // namespace

Metrics metrics_of(const Description& description, const Scenario& scenario, const Results& results) {
  Metrics metrics;
  std::vector<double> ttft, tpot, latency;
  Time first = Time::max(), last_arrival;
  std::uint64_t output = 0, prompt = 0, hit = 0, met = 0;
  for (const RequestRecord& record : results.requests) {
    first = std::min(first, record.arrival);
    last_arrival = std::max(last_arrival, record.arrival);
    metrics.transferred_tokens += record.transferred;
    if (!description.measure.holds(record.arrival)) continue;
    const Request& request = scenario.requests[record.id];
    const Time to_first = record.first - record.arrival + description.front_end;
    ttft.push_back(static_cast<double>(to_first.ps()));
    latency.push_back(static_cast<double>((record.last - record.arrival + description.front_end).ps()));
    bool meets = to_first <= description.slo.ttft;
    if (request.output > 1) {
      const double mean = static_cast<double>((record.last - record.first).ps()) / (request.output - 1.0);
      tpot.push_back(mean);
      meets = meets && mean <= static_cast<double>(description.slo.tpot.ps());
    }
    met += meets ? 1U : 0U;
    output += request.output;
    prompt += request.prompt;
    hit += record.prefix_hit;
  }
  metrics.requests = ttft.size();
  if (ttft.empty())
    throw Error(ErrorCode::bad_input, {.key = "serving.measure"},
                fmt::format("no request arrives in the window; the last one arrives at {}", readable(last_arrival)),
                "a window in which requests arrive");
  metrics.ttft = figures_of_values(ttft);
  metrics.tpot = figures_of_values(tpot);
  metrics.latency = figures_of_values(latency);
  metrics.itl = figures_of_gaps(results.gaps, scenario, results, description.measure);
  metrics.makespan = (results.end - first).seconds();
  const Time from = std::max(first, description.measure.from), to = std::min(results.end, description.measure.to);
  metrics.span = (to - from).seconds();
  const double span = metrics.span > 0 ? metrics.span : nan;
  const auto count = static_cast<double>(metrics.requests);
  metrics.requests_per_s = count / span;
  metrics.output_tokens_per_s = static_cast<double>(output) / span;
  metrics.total_tokens_per_s = static_cast<double>(output + prompt) / span;
  for (const InstanceOptions& instance : description.instances)
    metrics.npus += instance.count * instance.parallel.npus();
  metrics.slo_attainment = static_cast<double>(met) / count;
  metrics.goodput = static_cast<double>(met) / span;
  metrics.prefix_hit_share = static_cast<double>(hit) / static_cast<double>(prompt);
  add_instances(results, metrics);
  return metrics;
}

}  // namespace orrery::serving
