#include "study_trials.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "orrery/explore/ranking.hpp"
#include "orrery/parallel/packing.hpp"
#include "stop_request.hpp"

namespace orrery::app {
namespace {

using explore::Point;
using explore::Study;

std::size_t index_of(std::string_view metric) {
  return static_cast<std::size_t>(std::ranges::find(explore::metrics(), metric, &explore::MetricInfo::name) -
                                  explore::metrics().begin());
}

/// Returns the first metric that the study needs and the trial does not have; nothing if it has all of them.
std::optional<std::string> missing_metric(const Study& study, const Trial& trial) {
  const auto is_missing = [&](const std::string& name) {
    return explore::is_metric(name) && std::isnan(trial.metrics[index_of(name)]);
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
  explore::Names names = point.names;
  for (std::size_t i = 0; i < explore::metrics().size(); ++i)
    if (!std::isnan(trial.metrics[i])) names[std::string(explore::metrics()[i].name)] = trial.metrics[i];
  for (const explore::Expression& constraint : study.constraints) {
    if (std::ranges::none_of(constraint.names(), explore::is_metric) || constraint.holds(names)) continue;
    trial.status = TrialStatus::excluded;
    trial.text = constraint.text();
    return;
  }
}

/// Trials of a rank by number.
using Trials = std::map<std::uint64_t, Trial>;

/// Simulates a point and adds it to `mine` and to the journal. Returns false if a stop on request ended it.
bool simulate_point(const StudyRun& run, const Point& point, Trials& mine) {
  auto trial = run.stop_requested()
                   ? std::nullopt
                   : simulate_trial(inputs_of(run.study, run.command, point), run.study.fold, run.stop_requested);
  if (!trial) return false;
  apply_constraints(run.study, point, *trial);
  run.journal.add(point.number, *trial);
  mine.emplace(point.number, std::move(*trial));
  return true;
}

/// Returns the trials of all ranks on rank 0, with those of earlier jobs. Collective.
Trials gather(const StudyRun& run, const Trials& mine, parallel::Communicator& world) {
  parallel::Packer packer;
  for (const auto& [number, trial] : mine) {
    packer.put(number);
    packer.put(trial.status);
    packer.put_all(std::span<const double>(trial.metrics));
    packer.put_text(trial.text);
  }
  const auto bytes = packer.take();
  const auto all = world.gather(std::span<const std::byte>(bytes), Rank(0));
  Trials trials;
  if (!world.is_root()) return trials;
  trials = run.journal.known();
  for (parallel::Unpacker unpacker(all); !unpacker.empty();) {
    Trial& trial = trials[unpacker.get<std::uint64_t>()];
    trial.status = unpacker.get<TrialStatus>();
    trial.metrics = unpacker.get_all<double>();
    trial.text = unpacker.get_text();
  }
  return trials;
}

/// Ends all ranks if one of them has stopped. `done`: trials of this rank. Collective.
void end_if_stopped(const StudyRun& run, bool has_stopped, std::size_t done, parallel::Communicator& world) {
  std::int64_t sums[] = {has_stopped ? 1 : 0, static_cast<std::int64_t>(done)};
  world.sum(sums);
  world.agree([&] {
    if (world.is_root() && sums[0] > 0)
      throw Error(ErrorCode::interrupted,
                  fmt::format("stopped by {}: {} of {} configurations are done, and {}.journal.* keep them. The same "
                              "command goes on from there",
                              *stop_reason() == '\0' ? "a request to another rank" : stop_reason(),
                              static_cast<std::size_t>(sums[1]) + run.journal.known().size(), run.points.size(),
                              run.command.output.string()));
  });
}

/// What is known of a point before it is simulated.
struct Estimate {
  std::uint64_t number = 0;
  TrialEstimate of_trial = {};
  bool is_settled = false;  ///< no simulation can make it one of the best
};

/// Finds what may be among the best, by bounds.
class BoundedSearch {
 public:
  BoundedSearch(const StudyRun& run, parallel::Communicator& world)
      : run_(run), world_(world), incumbents_(run.study.objectives, run.study.keep) {}

  StudyTrials search() {
    find_bounds();
    for (const auto& [number, trial] : run_.journal.known()) add_incumbent(trial);
    std::size_t size = world_.size() == 1 ? 1 : 4 * static_cast<std::size_t>(world_.size());
    for (auto round = next_round(size); !round.empty(); round = next_round(size)) {
      const bool is_new = simulate(round);
      // Where the best are known already, all that is left has to be simulated.
      if (world_.size() > 1 && !is_new) size *= 2;
    }
    return collect();
  }

 private:
  /// Returns the bounds of the objectives of a point.
  std::vector<double> bounds_of_objectives(const TrialEstimate& estimate) const {
    std::vector<double> bounds;
    for (const auto& objective : run_.study.objectives) bounds.push_back(estimate.bound(objective.metric));
    return bounds;
  }
  void add_incumbent(const Trial& trial) {
    std::vector<double> metrics;
    for (const auto& objective : run_.study.objectives)
      metrics.push_back(trial.status == TrialStatus::done ? trial.metrics[index_of(objective.metric)] : std::nan(""));
    incumbents_.add(std::move(metrics));
  }

  /// Says whether a limit on a metric rules a point out, and which one.
  const explore::Expression* broken_limit(const Point& point, const TrialEstimate& estimate) const {
    for (const explore::Expression& constraint : run_.study.constraints) {
      const auto limited = constraint.limited_name();
      if (!limited || !explore::is_metric(*limited) || std::isnan(estimate.bound(*limited)) ||
          std::ranges::count_if(constraint.names(), explore::is_metric) > 1)
        continue;
      explore::Names names = point.names;
      names[*limited] = estimate.bound(*limited);
      if (!constraint.holds(names)) return &constraint;
    }
    return nullptr;
  }

  /// Finds the bounds of all points, of each on one rank. Collective.
  void find_bounds() {
    std::vector<Estimate> mine;
    TrialEstimator estimator;
    world_.agree([&] {
      const auto step = static_cast<std::size_t>(world_.size());
      for (std::size_t i = static_cast<std::size_t>(world_.rank().value()); i < run_.points.size(); i += step) {
        const Point& point = run_.points[i];
        Estimate& estimate = mine.emplace_back(Estimate{.number = point.number});
        auto found = estimator.estimate(inputs_of(run_.study, run_.command, point));
        estimate.of_trial = found.estimate;
        if (!found.settled) {
          const explore::Expression* const broken = broken_limit(point, found.estimate);
          if (broken != nullptr) found.settled = Trial::ended(TrialStatus::excluded, broken->text());
        }
        estimate.is_settled = found.settled.has_value();
        if (found.settled) mine_.emplace(point.number, std::move(*found.settled));
      }
    });
    estimates_ = world_.all_gather(std::span<const Estimate>(mine));
    std::ranges::sort(estimates_, {}, &Estimate::number);
    for (std::size_t i = 0; i < estimates_.size(); ++i)
      if (!estimates_[i].is_settled && !run_.journal.known().contains(estimates_[i].number)) left_.push_back(i);
    std::ranges::stable_sort(left_, {}, [&](std::size_t i) { return estimates_[i].of_trial.step; });
    const auto unbounded =
        std::ranges::count_if(left_, [&](std::size_t i) { return estimates_[i].of_trial.step == Time::zero(); });
    if (unbounded > 0 && world_.is_root())
      spdlog::warn(
          "{} of {} configurations have no bound of their time and are simulated in any case "
          "(docs/exploration.md, Bounds)",
          unbounded, estimates_.size());
  }

  /// Returns the points to simulate next: positions in `estimates_`.
  std::vector<std::size_t> next_round(std::size_t size) {
    std::vector<std::size_t> round;
    for (; next_ < left_.size() && round.size() < size; ++next_)
      if (!incumbents_.rules_out(bounds_of_objectives(estimates_[left_[next_]].of_trial)))
        round.push_back(left_[next_]);
    return round;
  }
  /// Simulates points, whose work the ranks share evenly. Returns whether one of them is among the best so far.
  /// Collective.
  bool simulate(std::vector<std::size_t> round) {
    std::ranges::stable_sort(round, std::greater<>(), [&](std::size_t i) { return estimates_[i].of_trial.work; });
    std::vector<double> loads(static_cast<std::size_t>(world_.size()));
    std::vector<std::size_t> own;
    for (const std::size_t i : round) {
      const auto least = std::ranges::min_element(loads);
      *least += estimates_[i].of_trial.work;
      if (least - loads.begin() == world_.rank().value()) own.push_back(i);
    }
    parallel::Packer packer;
    bool has_stopped = false;
    world_.agree([&] {
      for (const std::size_t i : own) {
        const Point& point = run_.points[i];
        has_stopped = !simulate_point(run_, point, mine_);
        if (has_stopped) return;
        const Trial& trial = mine_.at(point.number);
        require_above_bound(point, trial, estimates_[i].of_trial);
        packer.put(trial.status);
        packer.put_all(std::span<const double>(trial.metrics));
      }
    });
    end_if_stopped(run_, has_stopped, mine_.size(), world_);
    const auto bytes = packer.take();
    const auto all = world_.all_gather(std::span<const std::byte>(bytes));
    bool is_new = false;
    for (parallel::Unpacker unpacker(all); !unpacker.empty();) {
      Trial trial;
      trial.status = unpacker.get<TrialStatus>();
      trial.metrics = unpacker.get_all<double>();
      is_new |= trial.status == TrialStatus::done && !is_ruled_out(trial);
      add_incumbent(trial);
    }
    return is_new;
  }
  bool is_ruled_out(const Trial& trial) const {
    std::vector<double> metrics;
    for (const auto& objective : run_.study.objectives) metrics.push_back(trial.metrics[index_of(objective.metric)]);
    return incumbents_.rules_out(metrics);
  }
  static void require_above_bound(const Point& point, const Trial& trial, const TrialEstimate& estimate) {
    for (const std::string_view metric : {"step_time", "peak_memory"}) {
      const double found = trial.metrics[index_of(metric)], bound = estimate.bound(metric);
      if (found < bound)
        throw Error(ErrorCode::internal,
                    fmt::format("trial {}: {} is {}, below its bound of {}", point.number, metric, found, bound));
    }
  }

  /// Returns all rows. Collective.
  StudyTrials collect() {
    Trials trials = gather(run_, mine_, world_);
    StudyTrials result;
    if (!world_.is_root()) return result;
    for (std::size_t i = 0; i < run_.points.size(); ++i) {
      const TrialEstimate& estimate = estimates_[i].of_trial;
      Row row{run_.points[i], Trial::ended(TrialStatus::ruled_out, ""), estimate.bound("step_time")};
      const auto found = trials.find(row.point.number);
      const bool is_ruled_out = !estimates_[i].is_settled && incumbents_.rules_out(bounds_of_objectives(estimate));
      if (found != trials.end() && is_ruled_out) result.extra.push_back(row.point.number);
      if (found != trials.end() && !is_ruled_out) row.trial = std::move(found->second);
      result.rows.push_back(std::move(row));
    }
    return result;
  }

  const StudyRun& run_;
  parallel::Communicator& world_;
  explore::Incumbents incumbents_;
  std::vector<Estimate> estimates_;  ///< [points]
  std::vector<std::size_t> left_;    ///< points that are to be tried, the least bound first
  std::size_t next_ = 0;             ///< of `left_`
  Trials mine_;
};

}  // namespace

config::Inputs inputs_of(const Study& study, const config::ExploreCommand& command, const Point& point) {
  config::Inputs inputs{.file = study.base, .overrides = command.overrides};
  if (!study.cost.empty()) inputs.overrides.push_back(fmt::format("cost=\"{}\"", study.cost));
  for (const auto& [key, text] : point.settings) inputs.overrides.push_back(fmt::format("{}={}", key, text));
  return inputs;
}

StudyTrials simulate_all(const StudyRun& run, parallel::Communicator& world) {
  Trials mine;
  bool has_stopped = false;
  world.agree([&] {
    std::size_t turn = 0;
    for (const Point& point : run.points) {
      if (run.journal.known().contains(point.number)) continue;
      if (turn++ % static_cast<std::size_t>(world.size()) != static_cast<std::size_t>(world.rank().value())) continue;
      has_stopped = !simulate_point(run, point, mine);
      if (has_stopped) return;
    }
  });
  end_if_stopped(run, has_stopped, mine.size(), world);
  Trials trials = gather(run, mine, world);
  StudyTrials result;
  if (!world.is_root()) return result;
  for (const Point& point : run.points) result.rows.push_back({point, std::move(trials.at(point.number))});
  return result;
}

StudyTrials simulate_bounded(const StudyRun& run, parallel::Communicator& world) {
  return BoundedSearch(run, world).search();
}

}  // namespace orrery::app
