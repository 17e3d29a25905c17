#include "trial.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <new>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "campaign_trial.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/serving.hpp"
#include "orrery/explore/study.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/results/figures.hpp"
#include "orrery/results/metric_registry.hpp"
#include "orrery/run/collect.hpp"
#include "orrery/run/preparation.hpp"
#include "orrery/run/simulation.hpp"
#include "orrery/workload/figures.hpp"
#include "orrery/workload/outline.hpp"
#include "quick_bound.hpp"
#include "serving_rate.hpp"
#include "trial_memory.hpp"

namespace orrery::study {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// Returns what becomes of a trial whose NPUs need so much; nothing if it fits.
std::optional<std::string> excess(Bytes needed, const config::Configuration& configuration, bool is_bound) {
  const Bytes room = configuration.execution.room();
  if (room.count() == 0 || needed <= room) return {};
  const auto text = [&](Bytes bytes) {
    return size_text(static_cast<std::uint64_t>(bytes.count()), static_cast<std::uint64_t>(room.count()));
  };
  return fmt::format("needs {}{} of {}", is_bound ? "at least " : "", text(needed), text(room));
}

/// Returns the figures of a step that metrics need. What NPUs execute is counted in the structures of the run, if all
/// NPUs of a stage have the same one, so that they need not be made again.
workload::Figures figures_of(const workload::Description& description, const run::HostedTraces& traces) {
  if (!workload::has_outline(description)) return workload::figures(description);
  workload::Figures figures = workload::figures_of_model(description);
  const auto npus = workload::npus_of_stages(description.parallel);
  const double npus_of_stage = figures.num_npus / static_cast<std::uint32_t>(npus.size());
  for (const NpuId npu : npus) {
    std::uint64_t flops = 0;
    for (const auto& node : traces.traces[npu.index()].graph->nodes)
      if (node.kind == trace::NodeKind::compute) flops += node.detail;
    figures.executed_flops += static_cast<double>(flops) * npus_of_stage;
  }
  return figures;
}

/// Returns a trial whose metrics are not known.
Trial trial_without_values() {
  Trial trial;
  trial.metrics.resize(results::study_metrics().size(), unknown);
  return trial;
}

/// Takes the values of metrics by name.
template <class Values>
void take_values(const Values& values, Trial& trial) {
  for (std::size_t i = 0; i < results::study_metrics().size(); ++i)
    if (const auto found = values.find(results::study_metrics()[i].name); found != values.end())
      trial.metrics[i] = found->second;
}

/// Returns the trial of a cluster over time, which has no step.
Trial trial_of_cluster(const config::Configuration& configuration) {
  Trial trial = trial_without_values();
  take_values(cluster_metrics(configuration), trial);
  return trial;
}

std::optional<Trial> simulate_configuration(config::Configuration& configuration, const TrialOptions& options,
                                            const std::function<bool()>& stop_requested) {
  if (has_cluster_alone(configuration)) return trial_of_cluster(configuration);
  configuration.run.fold = options.fold && configuration.run.partition.is_default() &&
                           !configuration.execution.network.model->simulates_links() &&
                           !configuration.execution.network.circuits;  // as a run would refuse
  configuration.run.quiet = true;
  configuration.execution.record_iterations = 0;  // metrics need no records of single collectives
  configuration.run.memory = config::ExcessPolicy::report;
  if (options.max_memory.count() > 0 && configuration.run.fold) {
    const Bytes needed = memory_of_simulation(configuration);
    if (needed > options.max_memory)
      return Trial::ended(TrialStatus::refused,
                          fmt::format("its simulation needs about {}; max-memory-per-trial is {}",
                                      size_text(needed.count(), options.max_memory.count()),
                                      size_text(options.max_memory.count(), options.max_memory.count())));
  }
  const auto alone = parallel::make_serial();
  const auto preparation = run::prepare(configuration, *alone);
  const auto simulation = run::simulate(*preparation, configuration.run, stop_requested, *alone);
  if (simulation->stopped_at()) return {};
  auto all = run::collect(*preparation, *simulation, *alone);
  std::optional<results::TrainingStep> step;
  if (configuration.workload.generated)
    step = run::training_step(configuration, *configuration.workload.generated,
                              figures_of(*configuration.workload.generated, preparation->traces()));
  Trial trial = trial_without_values();
  const fold::Folding* const folding = preparation->folding();
  const results::NpuRecords npus = folding ? results::NpuRecords(std::move(all.npus), folding->classes().of_npu)
                                           : results::NpuRecords(std::move(all.npus));
  auto metrics = results::metrics_of(npus, {}, configuration.execution.iterations, step, all.collective_sums);
  Bytes peak;
  for (const npu::NpuRecord& npu : npus.distinct()) peak = std::max(peak, npu.peak_local_memory);
  if (const auto hardware = run::hardware_of(configuration); metrics && hardware)
    results::add_cost(*hardware, *metrics);
  const auto& generated = configuration.workload.generated;
  if (metrics && generated && generated->parallel[workload::Axis::pp] == 1)
    metrics->bubble = {0, 0};  // nobody waits for a pipeline
  if (metrics) {
    for (std::size_t i = 0; i < trial.metrics.size(); ++i)
      trial.metrics[i] = results::value_of(results::study_metrics()[i], {*metrics, peak});
    trial.breakdown = metrics->breakdown;
    take_values(campaign_metrics(configuration, metrics->step_time.seconds()), trial);
  }
  if (metrics && options.figures) std::ranges::copy(results::figures_of(*metrics), std::back_inserter(trial.metrics));
  if (auto text = excess(peak, configuration, false)) {
    trial.status = TrialStatus::does_not_fit;
    trial.text = std::move(*text);
  }
  return trial;
}

/// Returns what `simulate` does; a Trial in place of the faults that one can have.
std::optional<Trial> with_faults_as_results(const std::function<std::optional<Trial>()>& simulate) {
  try {
    return simulate();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_input || error.code() == ErrorCode::usage)
      return Trial::ended(TrialStatus::refused, error.what());
    if (error.code() == ErrorCode::interrupted) return {};
    if (error.code() == ErrorCode::stuck) return Trial::ended(TrialStatus::stuck, error.what());
    if (error.code() == ErrorCode::internal) return Trial::ended(TrialStatus::failed, error.what());
    throw;
  } catch (const std::bad_alloc&) {
    return Trial::ended(TrialStatus::failed, "the simulation needs more memory than there is");
  }
}

/// Adds what a step costs at least: it takes no less time, and NPUs compute for no less time. `compute`: seconds.
void add_cost_bounds(const cost::Hardware& hardware, double compute, TrialEstimate& estimate) {
  const double seconds = estimate.step.seconds();
  const bool is_idle_thrifty = hardware.npu.idle_power <= hardware.npu.busy_power;
  const auto at_any_time = cost::cost_of_step(hardware, seconds, is_idle_thrifty ? 0 : 1);
  const double busy = seconds > 0 ? std::min(1.0, compute / seconds) : 0;
  const auto least = cost::cost_of_step(hardware, seconds, is_idle_thrifty ? busy : 1);
  estimate.capex = least.capex.value_or(0);
  estimate.power = at_any_time.power.value_or(0);
  estimate.energy = least.energy.value_or(0);
  estimate.price = least.price.value_or(0);
}

}  // namespace

Trial Trial::ended(TrialStatus status, std::string text) { return {status, {}, std::move(text)}; }

double TrialEstimate::bound(std::string_view metric) const {
  // Rates are rounded twice, here and in the results.
  constexpr double margin = 1 + 1e-9;
  const double seconds = static_cast<double>(step.ps()) * 1e-12;
  if (metric == "peak_memory") return static_cast<double>(peak_memory.count());
  if (metric == "capex" && capex > 0) return capex;
  if (step == Time::zero()) return unknown;
  if (metric == "step_time") return seconds;
  if (metric == "tokens_per_s" && tokens > 0) return tokens / seconds * margin;
  if (metric == "samples_per_s") return samples / seconds * margin;
  const double wanted = tokens > 0 ? tokens : samples;
  if (metric == "power" && power > 0) return power / margin;
  if (metric == "energy_per_step" && energy > 0) return energy / margin;
  if (metric == "usd_per_step" && price > 0) return price / margin;
  if (metric == "tokens_per_usd" && price > 0) return wanted / price * margin;
  if (metric == "tokens_per_j" && energy > 0) return wanted / energy * margin;
  if (metric == "mfu" && seconds_of_model > 0) return seconds_of_model / seconds * margin;
  if (metric == "hfu" && seconds_of_execution > 0) return seconds_of_execution / seconds * margin;
  return unknown;
}

bool TrialEstimate::knows(std::string_view metric) {
  constexpr std::array bounded{"step_time",    "peak_memory",   "capex", "power", "energy_per_step", "usd_per_step",
                               "tokens_per_s", "samples_per_s", "mfu",   "hfu",   "tokens_per_usd",  "tokens_per_j"};
  return std::ranges::find(bounded, metric) != bounded.end();
}

bool TrialEstimate::is_most(std::string_view metric) {
  const results::MetricInfo* const found = results::find_metric(metric);
  return found != nullptr && found->better == results::Better::more;
}

/// A system, the settings that give it, and what is known of steps on it.
struct TrialEstimator::Common {
  std::string settings;
  config::Configuration configuration;
  std::unique_ptr<run::System> system = nullptr;
  QuickBounds bounds = {};
};

/// Returns the bounds; nothing if the run would refuse the step, which it says better.
std::optional<StepBounds> TrialEstimator::bounds_of_step(const config::Configuration& configuration, Common& common,
                                                         bool is_quick) {
  try {
    return is_quick ? common.bounds.bounds_of_step(configuration, *common.system)
                    : study::bounds_of_step(configuration, *common.system);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input) throw;
    return {};
  }
}

void TrialEstimator::add_bounds(const config::Configuration& configuration, bool is_quick, Result& result) {
  TrialEstimate& estimate = result.estimate;
  StepBounds bounds;
  if (has_time_bound(configuration)) {
    const auto found = bounds_of_step(configuration, *common_, is_quick);
    bounds = found.value_or(StepBounds());
    estimate.step = bounds.step;
    result.is_best = !is_quick || !found;
  }
  if (const auto hardware = run::hardware_of(configuration)) add_cost_bounds(*hardware, bounds.compute, estimate);
  if (!configuration.workload.generated) return;
  const auto& step = *configuration.workload.generated;
  const auto size = workload::size_of_step(step);
  estimate.samples = static_cast<double>(size.samples);
  estimate.tokens = static_cast<double>(size.tokens);
  estimate.work += step.parallel.micro_batches;
  const double peak = configuration.execution.compute.peak_flops;
  if (!has_flops_ || peak <= 0) return;
  const auto figures = workload::figures_of_model(step);
  estimate.seconds_of_model = figures.model_flops / (figures.num_npus * peak);
  estimate.seconds_of_execution = bounds.flops_of_npu / peak;
}

TrialEstimator::TrialEstimator(bool has_flops) : has_flops_(has_flops) {}
TrialEstimator::~TrialEstimator() = default;

TrialEstimator::Result TrialEstimator::estimate(config::Variants& variants, const std::vector<std::string>& settings) {
  return estimate(variants, settings, false);
}

TrialEstimator::Result TrialEstimator::estimate_quickly(config::Variants& variants,
                                                        const std::vector<std::string>& settings) {
  return estimate(variants, settings, true);
}

TrialEstimator::Result TrialEstimator::estimate(config::Variants& variants, const std::vector<std::string>& settings,
                                                bool is_quick) {
  std::string of_system;  // what is known to concern the workload alone is left out
  for (const std::string& setting : settings)
    if (!setting.starts_with("workload.parallel.") && !setting.starts_with("workload.model."))
      of_system += setting + '\n';
  Result result;
  try {
    auto configuration = variants.read(settings);
    if (has_cluster_alone(configuration)) return result;
    if (!common_ || common_->settings != of_system) common_.reset(new Common{of_system, configuration});
    if (configuration.workload.generated && workload::has_outline(*configuration.workload.generated))
      result.estimate.peak_memory = common_->bounds.least_peak_memory(configuration);
    if (auto text = excess(result.estimate.peak_memory, configuration, true)) {
      result.settled = Trial::ended(TrialStatus::does_not_fit, std::move(*text));
      return result;
    }
    if (!common_->system) common_->system = std::make_unique<run::System>(common_->configuration);
    add_bounds(configuration, is_quick, result);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input && error.code() != ErrorCode::usage) throw;
    result.settled = Trial::ended(TrialStatus::refused, error.what());
  }
  return result;
}

std::optional<Trial> simulate_trial(config::Configuration& configuration, const TrialOptions& options,
                                    const std::function<bool()>& stop_requested) {
  return with_faults_as_results([&] { return simulate_configuration(configuration, options, stop_requested); });
}

std::optional<Trial> simulate_trial(config::Variants& variants, const std::vector<std::string>& settings,
                                    const TrialOptions& options, const std::function<bool()>& stop_requested) {
  return with_faults_as_results([&] {
    auto configuration = variants.read(settings);
    return simulate_configuration(configuration, options, stop_requested);
  });
}

std::optional<Trial> simulate_serving_trial(const config::Inputs& inputs, bool finds_rate,
                                            const std::function<bool()>& stop_requested) {
  return with_faults_as_results([&]() -> std::optional<Trial> {
    const config::ServingConfiguration configuration = config::read_serving(inputs);
    const serving::Metrics m = serve_alone(configuration, stop_requested).metrics;
    std::map<std::string, double, std::less<>> found;
    for (const results::MetricInfo& metric : results::study_metrics())
      if (metric.of_serving != nullptr) found[std::string(metric.name)] = metric.of_serving(m);
    if (finds_rate) {
      found["max_rate"] = highest_rate(configuration, 0.02, stop_requested).requests_per_s;
      found["max_rate_per_npu"] = found["max_rate"] / m.npus;
    }
    Trial trial = trial_without_values();
    take_values(found, trial);
    return trial;
  });
}

void require_above_bounds(std::uint64_t number, const Trial& trial, const TrialEstimate& estimate) {
  if (trial.metrics.empty()) return;
  for (std::size_t i = 0; i < results::study_metrics().size(); ++i) {
    const std::string_view metric = results::study_metrics()[i].name;
    const double found = trial.metric(i), bound = estimate.bound(metric);
    const bool is_most = TrialEstimate::is_most(metric);
    if (is_most ? found > bound : found < bound)
      throw Error(ErrorCode::internal, fmt::format("trial {}: {} is {}, {} its bound of {}", number, metric, found,
                                                   is_most ? "above" : "below", bound));
  }
}

}  // namespace orrery::study
