#include "study_trials.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/job_context.hpp"
#include "orrery/config/campaign_file.hpp"
#include "orrery/parallel/packing.hpp"
#include "orrery/results/figures.hpp"
#include "orrery/results/metric_registry.hpp"
#include "trial_queue.hpp"

namespace orrery::study {
namespace {

using explore::Point;
using explore::Study;

/// Returns the first metric that the study needs and the trial does not have; nothing if it has all of them.
std::optional<std::string> missing_metric(const Study& study, const Trial& trial) {
  const auto is_missing = [&](const std::string& name) {
    return explore::is_metric(name) && std::isnan(metric_of(trial, name));
  };
  for (const explore::Expression& constraint : study.constraints)
    for (const std::string& name : constraint.names())
      if (is_missing(name)) return name;
  for (const auto& objective : study.objectives)
    if (is_missing(objective.metric)) return objective.metric;
  return {};
}

/// Looks at the metrics of a trial that is done.
void apply_constraints(const Study& study, const Point& point, Trial& trial) {
  if (trial.status != TrialStatus::done) return;
  if (const auto missing = missing_metric(study, trial)) {
    trial.status = TrialStatus::excluded;
    trial.text = fmt::format("{}, which is not known{}", *missing,
                             explore::needs_prices(*missing) ? ": `cost` lacks the prices" : "");
    return;
  }
  const explore::Names names = names_of(study, point, trial);
  for (const explore::Expression& constraint : study.constraints) {
    if (std::ranges::none_of(constraint.names(), explore::is_metric) || constraint.holds(names)) continue;
    trial.status = TrialStatus::excluded;
    trial.text = constraint.text();
    return;
  }
}

/// Says whether the study needs the highest rate, whose search takes many simulations.
bool names_rate(const Study& study) {
  const auto is_rate = [](std::string_view name) { return name.starts_with("max_rate"); };
  return std::ranges::any_of(study.objectives, is_rate, &explore::Objective::metric) ||
         std::ranges::any_of(study.constraints, [&](const explore::Expression& constraint) {
           return std::ranges::any_of(constraint.names(), is_rate);
         });
}

/// Simulates a point. Returns nothing if a stop on request ended it.
std::optional<Trial> simulated(const StudyRun& run, const Point& point) {
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double> most(run.study.most.seconds);
  bool is_out_of_time = false;
  const auto stop = [&] {
    is_out_of_time = run.study.most.seconds > 0 && std::chrono::steady_clock::now() - start >= most;
    return is_out_of_time || run.stop_requested();
  };
  const TrialOptions options{run.study.fidelity.fold, !explore::paths_of(run.study).empty(),
                             Bytes(run.study.most.memory)};
  auto trial = run.serves
                   ? simulate_serving_trial(inputs_of(run.study, run.command, point), names_rate(run.study), stop)
                   : simulate_trial(*run.variants, settings_of(point), options, stop);
  if (!trial && is_out_of_time)
    trial = Trial::ended(TrialStatus::timed_out, fmt::format("took longer than {} s", run.study.most.seconds));
  if (trial) apply_constraints(run.study, point, *trial);
  return trial;
}

/// Throws what ended a trial, if the command wants that.
void require_no_fault(const StudyRun& run, const Point& point, const Trial& trial) {
  const bool is_faulty = trial.status == TrialStatus::refused || trial.status == TrialStatus::stuck ||
                         trial.status == TrialStatus::failed || trial.status == TrialStatus::timed_out;
  if (!run.command.strict || !is_faulty) return;
  throw Error(trial.status == TrialStatus::refused ? ErrorCode::bad_input
              : trial.status == TrialStatus::stuck ? ErrorCode::stuck
                                                   : ErrorCode::internal,
              fmt::format("trial {}: {} (--strict)", point.number, trial.text));
}

std::vector<std::byte> pack(const Trials& trials) {
  parallel::Packer packer;
  for (const auto& [number, trial] : trials) {
    packer.put(number);
    packer.put(trial.status);
    packer.put_all(std::span<const double>(trial.metrics));
    packer.put_text(trial.text);
  }
  return packer.take();
}

Trials unpack(std::span<const std::byte> bytes) {
  Trials trials;
  for (parallel::Unpacker unpacker(bytes); !unpacker.empty();) {
    Trial& trial = trials[unpacker.get<std::uint64_t>()];
    trial.status = unpacker.get<TrialStatus>();
    trial.metrics = unpacker.get_all<double>();
    trial.text = unpacker.get_text();
  }
  return trials;
}

/// Returns a run in which rank 0 answers others while it simulates.
StudyRun serving_run(const StudyRun& run, TrialQueue& queue) {
  StudyRun serving = run;
  serving.stop_requested = [&] {
    queue.serve();
    return run.stop_requested();
  };
  return serving;
}

}  // namespace

std::size_t index_of_metric(std::string_view metric) {
  if (explore::is_path(metric)) {
    const auto figures = results::figure_names();
    const auto found = std::ranges::find(figures, metric.substr(std::string_view("/metrics/").size()));
    return results::study_metrics().size() + static_cast<std::size_t>(found - figures.begin());
  }
  return static_cast<std::size_t>(std::ranges::find(results::study_metrics(), metric, &results::MetricInfo::name) -
                                  results::study_metrics().begin());
}

double metric_of(const Trial& trial, std::string_view metric) {
  const std::size_t index = index_of_metric(metric);
  return index < trial.metrics.size() ? trial.metrics[index] : std::numeric_limits<double>::quiet_NaN();
}

explore::Names names_of(const Study& study, const Point& point, const Trial& trial) {
  explore::Names names = point.names;
  const auto add = [&](std::string_view metric) {
    if (const double value = metric_of(trial, metric); !std::isnan(value)) names[std::string(metric)] = value;
  };
  for (const auto& metric : results::study_metrics()) add(metric.name);
  for (const std::string& path : explore::paths_of(study)) add(path);
  return names;
}

config::Inputs common_inputs(const Study& study, const ExploreCommand& command) {
  config::Inputs inputs{.file = study.base, .overrides = command.overrides};
  if (!study.cost.empty()) inputs.overrides.push_back(fmt::format("cost=\"{}\"", study.cost));
  for (const auto& [key, text] : study.fidelity.settings) inputs.overrides.push_back(fmt::format("{}={}", key, text));
  inputs.system_only = config::is_of_cluster(inputs);
  return inputs;
}

std::vector<std::string> settings_of(const Point& point) {
  std::vector<std::string> settings;
  settings.reserve(point.settings.size());
  for (const auto& [key, text] : point.settings) settings.push_back(key + '=' + text);
  return settings;
}

config::Inputs inputs_of(const Study& study, const ExploreCommand& command, const Point& point) {
  config::Inputs inputs = common_inputs(study, command);
  for (std::string& setting : settings_of(point)) inputs.overrides.push_back(std::move(setting));
  return inputs;
}

bool simulate_point(const StudyRun& run, const Point& point, Trials& mine) {
  auto trial = run.stop_requested() ? std::nullopt : simulated(run, point);
  if (!trial) return false;
  require_no_fault(run, point, *trial);
  if (point.number != unnumbered) run.journal.add(point.number, *trial);
  mine.emplace(point.number, std::move(*trial));
  return true;
}

std::vector<Trial> simulate_points(const StudyRun& run, const std::vector<Point>& points,
                                   parallel::Communicator& world) {
  parallel::Packer packer;
  for (const Point& point : points) {
    packer.put(point.number);
    packer.put_all(std::span<const std::uint32_t>(point.choice));
  }
  auto bytes = packer.take();
  world.broadcast_bytes(bytes, Rank(0));
  std::vector<Point> all_points;  // the same on all ranks
  Trials mine;                    // by position
  bool has_stopped = false;
  world.agree([&] {
    for (parallel::Unpacker unpacker(bytes); !unpacker.empty();) {
      const auto number = unpacker.get<std::uint64_t>();
      all_points.push_back(run.space.at(unpacker.get_all<std::uint32_t>()).value());
      all_points.back().number = number;
    }
  });
  TrialQueue queue(all_points.size(), world);
  const StudyRun serving = serving_run(run, queue);
  world.agree([&] {
    has_stopped = !queue.run([&](std::size_t i) {
      Trials one;
      if (!simulate_point(serving, all_points[i], one)) return false;
      mine.emplace(i, std::move(one.begin()->second));
      return true;
    });
  });
  end_stopped_study(run, has_stopped, 0, world);
  const auto packed = pack(mine);
  const auto all = world.all_gather(std::span<const std::byte>(packed));
  std::vector<Trial> trials(all_points.size());
  for (auto& [at, trial] : unpack(all)) trials[at] = std::move(trial);
  return trials;
}

// A study may have a million trials, so that none is held twice for longer than needed.
Trials gather_trials(Trials mine, parallel::Communicator& world) {
  if (world.size() == 1) return mine;
  std::vector<std::byte> bytes;
  if (!world.is_root()) {
    bytes = pack(mine);
    mine.clear();
  }
  const auto all = world.gather(std::span<const std::byte>(bytes), Rank(0));
  mine.merge(unpack(all));
  return mine;
}

std::optional<Trial> taken(std::uint64_t number, Trials& trials, const TrialJournal& journal) {
  if (auto found = trials.extract(number)) return std::move(found.mapped());
  if (const auto known = journal.known().find(number); known != journal.known().end()) return known->second;
  return {};
}

void end_stopped_study(const StudyRun& run, bool has_stopped, std::size_t done, parallel::Communicator& world) {
  std::int64_t sums[] = {has_stopped ? 1 : 0, static_cast<std::int64_t>(done)};
  world.sum(sums);
  if (sums[0] > 0) run.journal.keep();
  const std::string_view reason = JobContext::current()->stop.reason();
  world.agree([&] {
    if (world.is_root() && sums[0] > 0)
      throw Error(ErrorCode::interrupted,
                  fmt::format("stopped by {}: {} of {} configurations are done, and {}.journal.* keep them. The same "
                              "command goes on from there",
                              reason.empty() ? "a request to another rank" : reason,
                              static_cast<std::size_t>(sums[1]) + run.journal.known().size(), run.points.size(),
                              run.command.output.string()));
  });
}

void simulate_from(std::size_t first, const StudyRun& run, StudyTrials& found, parallel::Communicator& world) {
  std::vector<std::size_t> to_do;
  for (std::size_t i = first; i < run.points.size(); ++i)
    if (!run.journal.known().contains(run.points.number(i))) to_do.push_back(i);
  TrialQueue queue(to_do.size(), world);
  const StudyRun serving = serving_run(run, queue);
  Trials mine;
  bool has_stopped = false;
  world.agree([&] {
    has_stopped = !queue.run([&](std::size_t i) { return simulate_point(serving, run.points[to_do[i]], mine); });
  });
  end_stopped_study(run, has_stopped, mine.size(), world);
  Trials trials = gather_trials(std::move(mine), world);
  if (!world.is_root()) return;
  found.rows.reserve(run.points.size());
  for (std::size_t i = first; i < run.points.size(); ++i) {
    const std::uint64_t number = run.points.number(i);
    found.rows.push_back({number, taken(number, trials, run.journal).value()});
  }
}

StudyTrials simulate_all(const StudyRun& run, parallel::Communicator& world) {
  StudyTrials found;
  simulate_from(0, run, found, world);
  return found;
}

}  // namespace orrery::study
