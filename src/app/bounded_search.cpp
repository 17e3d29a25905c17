#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "dry_run.hpp"
#include "orrery/explore/ranking.hpp"
#include "orrery/parallel/packing.hpp"
#include "study_trials.hpp"

namespace orrery::app {
namespace {

using explore::Point;

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
      metrics.push_back(trial.status == TrialStatus::done ? trial.metrics[index_of_metric(objective.metric)]
                                                          : std::nan(""));
    incumbents_.add(std::move(metrics));
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
        auto found = estimator.estimate(*run_.variants, settings_of(point));
        estimate.of_trial = found.estimate;
        if (!found.settled) {
          const explore::Expression* const broken = broken_limit(run_.study, point, found.estimate);
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
        require_above_bounds(point.number, trial, estimates_[i].of_trial);
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
    for (const auto& objective : run_.study.objectives)
      metrics.push_back(trial.metrics[index_of_metric(objective.metric)]);
    return incumbents_.rules_out(metrics);
  }
  /// Returns all rows. Collective.
  StudyTrials collect() {
    Trials trials = gather_trials(run_, mine_, world_);
    StudyTrials result;
    if (!world_.is_root()) return result;
    for (std::size_t i = 0; i < run_.points.size(); ++i) {
      const TrialEstimate& estimate = estimates_[i].of_trial;
      Row row{run_.points.number(i), Trial::ended(TrialStatus::ruled_out, ""), estimate.bound("step_time")};
      const auto found = trials.find(row.number);
      const bool is_ruled_out = !estimates_[i].is_settled && incumbents_.rules_out(bounds_of_objectives(estimate));
      if (found != trials.end() && is_ruled_out) result.extra.push_back(row.number);
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

StudyTrials simulate_bounded(const StudyRun& run, parallel::Communicator& world) {
  return BoundedSearch(run, world).search();
}

}  // namespace orrery::app
