#include "trial.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "collect.hpp"
#include "orrery/base/text.hpp"
#include "orrery/explore/study.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/workload/figures.hpp"
#include "preparation.hpp"
#include "simulation.hpp"

namespace orrery::app {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// Returns the value of a metric of a study.
double metric(std::string_view name, const results::Metrics& all, Bytes peak) {
  if (name == "step_time") return static_cast<double>(all.step_time.ps()) * 1e-12;
  if (name == "tokens_per_s") return all.training.tokens_per_second.value_or(unknown);
  if (name == "samples_per_s") return all.training.samples_per_second.value_or(unknown);
  if (name == "mfu") return all.training.model_flops_utilisation.value_or(unknown);
  if (name == "hfu") return all.training.hardware_flops_utilisation.value_or(unknown);
  if (name == "compute") return all.shares.compute;
  if (name == "exposed_communication") return all.shares.exposed_communication;
  if (name == "idle") return all.shares.idle;
  if (name == "bubble") return all.bubble ? all.bubble->measured : unknown;
  if (name == "peak_memory") return static_cast<double>(peak.count());
  return unknown;
}

std::optional<Trial> simulate_configuration(config::Configuration& configuration, bool fold,
                                            const std::function<bool()>& stop_requested) {
  configuration.run.fold = fold && configuration.run.partition.is_default();
  configuration.run.quiet = true;
  configuration.run.memory = config::ExcessPolicy::report;
  const auto alone = parallel::make_serial();
  const auto preparation = prepare(configuration, *alone);
  const auto simulation = simulate(*preparation, configuration.run, stop_requested, *alone);
  if (simulation->stopped_at()) return {};
  const auto all = collect(*preparation, *simulation);
  std::optional<results::TrainingStep> step;
  if (configuration.workload.generated)
    step = training_step(configuration, workload::figures(*configuration.workload.generated));
  Trial trial;
  trial.metrics.resize(explore::metrics().size(), unknown);
  const auto metrics = results::metrics_of(all.npus, {}, configuration.execution.iterations, step, all.collective_sums);
  Bytes peak;
  for (const npu::NpuRecord& npu : all.npus) peak = std::max(peak, npu.peak_local_memory);
  if (metrics)
    for (std::size_t i = 0; i < trial.metrics.size(); ++i)
      trial.metrics[i] = metric(explore::metrics()[i].name, *metrics, peak);
  const Bytes size = configuration.execution.local_memory_size;
  if (size.count() > 0 && peak > size) {
    trial.status = TrialStatus::does_not_fit;
    trial.text = fmt::format(
        "needs {} of {}", size_text(static_cast<std::uint64_t>(peak.count()), static_cast<std::uint64_t>(size.count())),
        size_text(static_cast<std::uint64_t>(size.count()), static_cast<std::uint64_t>(size.count())));
  }
  return trial;
}

}  // namespace

std::optional<Trial> simulate_trial(const config::Inputs& inputs, bool fold,
                                    const std::function<bool()>& stop_requested) {
  const auto ended = [](TrialStatus status, const Error& error) {
    return Trial{status, std::vector<double>(explore::metrics().size(), unknown), error.what()};
  };
  try {
    auto configuration = config::read(inputs);
    return simulate_configuration(configuration, fold, stop_requested);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_input || error.code() == ErrorCode::usage)
      return ended(TrialStatus::refused, error);
    if (error.code() == ErrorCode::interrupted) return {};
    if (error.code() == ErrorCode::stuck) return ended(TrialStatus::stuck, error);
    throw;
  }
}

}  // namespace orrery::app
