#include "orrery/results/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/communicator/record.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/results/bandwidth.hpp"

namespace orrery::results {
namespace {

using npu::NpuRecord;
using Wide = __int128;

/// Sums a time over all NPUs, in whole picoseconds.
template <class Part>
Wide sum_over(const NpuRecords& npus, Part part) {
  Wide sum = 0;
  npus.for_each([&](const NpuRecord& npu, std::uint64_t count) {
    sum += static_cast<Wide>(std::invoke(part, npu).ps()) * static_cast<Wide>(count);
  });
  return sum;
}

Time nearest(Wide ps, Wide divisor) { return Time::from_ps(static_cast<std::int64_t>((ps + divisor / 2) / divisor)); }

/// Fills in how long a request and its tokens take. The time of a token whose step was not simulated lies between those
/// of the two nearest, on a line.
void fill_request(const Generation& generation, TrainingRates& rates) {
  const auto& [tokens, made, ends] = generation;
  const auto time_of = [&](std::size_t i) { return (ends[i] - ends[i - 1]).seconds(); };
  rates.time_to_first_token = ends.front().seconds();
  double decoding = 0;
  for (std::size_t i = 1; i < made.size(); ++i) {
    decoding += time_of(i);
    if (i + 1 == made.size()) continue;
    const auto between = static_cast<double>(made[i + 1] - made[i] - 1);
    decoding += between * (time_of(i) + time_of(i + 1)) / 2;
  }
  rates.request_time = *rates.time_to_first_token + decoding;
  if (made.size() == 1) return;
  rates.time_per_output_token = decoding / static_cast<double>(tokens - 1);
  rates.first_output_token = time_of(1);
  rates.last_output_token = time_of(made.size() - 1);
}

/// Sources: docs/results.md, /metrics.
TrainingRates training_rates(const TrainingStep& step, std::size_t num_npus, Time step_time) {
  TrainingRates rates;
  const double seconds = step_time.seconds();
  const auto npus = static_cast<double>(num_npus);
  if (step.generation) fill_request(*step.generation, rates);
  const double whole = rates.request_time.value_or(seconds);
  rates.samples_per_second = step.samples / whole;
  if (step.tokens > 0) {
    rates.tokens_per_second = step.tokens / whole;
    rates.tokens_per_second_per_npu = step.tokens / whole / npus;
  }
  if (step.phase == TrainingStep::Phase::prefill) rates.time_to_first_token = seconds;
  if (step.phase == TrainingStep::Phase::decode) rates.time_per_output_token = seconds;
  if (step.peak_flops > 0 && step.model_flops > 0) {
    rates.masks_scores = step.masks_scores;
    rates.model_flops_utilisation = step.model_flops / (seconds * npus * step.peak_flops);
    rates.hardware_flops_utilisation = step.executed_flops / (seconds * npus * step.peak_flops);
  }
  return rates;
}

}  // namespace

double Certainty::factor() const {
  constexpr double of_80_percent = 1.2815515655446004;  // standard deviations of a normal distribution, each way
  return std::exp(of_80_percent * deviation);
}

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
    rows.push_back(
        {key.first, key.second, total.count, total.time,
         static_cast<double>(worked_bytes(kind, key.second, total.bytes)) / seconds * bus_factor(kind, key.second)});
  }
  return rows;
}

std::optional<Metrics> metrics_of(const NpuRecords& npus, const NetworkFigures& network, std::uint32_t iterations,
                                  const std::optional<TrainingStep>& step,
                                  std::span<const communicator::CollectiveSum> collectives) {
  Time end;
  for (const NpuRecord& npu : npus.distinct()) end = std::max(end, npu.finish);
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
  const Wide idle = whole - compute - cpu - communication - memory;  // with the time after an NPU's own end
  metrics.shares = {share(compute), share(cpu), share(communication), share(memory), share(idle)};
  metrics.breakdown = mean_breakdown(npus, end);
  metrics.exposed_communication_time = nearest(communication, num_npus * iterations);
  for (const std::int64_t in_dimension : network.bytes) metrics.bytes_per_step.push_back(in_dimension / iterations);
  metrics.utilisation = network.utilisation;
  metrics.collectives = totals_of(collectives);
  if (!step) return metrics;
  metrics.certainty = step->certainty;
  if (metrics.step_time > Time::zero()) metrics.training = training_rates(*step, npus.size(), metrics.step_time);
  if (step->stages > 1 && !step->generation)  // the passes of a request are not alike
    metrics.bubble = {share(sum_over(npus, &NpuRecord::exposed_receive) + idle), step->ideal_bubble};
  return metrics;
}

void add_cost(const cost::Hardware& hardware, Metrics& metrics) {
  const auto& rates = metrics.training;
  const double seconds = rates.request_time.value_or(metrics.step_time.seconds());
  metrics.cost.step = cost::cost_of_step(hardware, seconds, metrics.shares.compute);
  const auto rate = rates.tokens_per_second ? rates.tokens_per_second : rates.samples_per_second;
  if (!rate) return;
  const auto per = [&](const std::optional<double>& of_step) {
    return of_step && *of_step > 0 ? std::optional(*rate * seconds / *of_step) : std::nullopt;
  };
  metrics.cost.tokens_per_usd = per(metrics.cost.step.price);
  metrics.cost.tokens_per_joule = per(metrics.cost.step.energy);
}

}  // namespace orrery::results
