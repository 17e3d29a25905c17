#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

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
  std::uint64_t position = 0;  ///< of the point
  TrialEstimate of_trial = {};
  bool is_settled = false;  ///< no simulation can make it one of the best
  bool is_best = false;     ///< no better estimate is known
};

/// Finds what may be among the best, by bounds. Each point has a quick estimate. The best one, which costs more, is
/// made where the quick one does not rule the point out.
class BoundedSearch {
 public:
  BoundedSearch(const StudyRun& run, parallel::Communicator& world)
      : run_(run), world_(world), incumbents_(run.study.objectives, run.study.keep) {}

  StudyTrials search() {
    estimate_all();
    for (const auto& [number, trial] : run_.journal.known()) add_incumbent(trial);
    std::size_t size = world_.size() == 1 ? 1 : 4 * static_cast<std::size_t>(world_.size());
    for (auto round = next_round(size); !round.empty(); round = next_round(size)) {
      const bool is_new = simulate(round);
      // Where the best are known already, all that is left has to be simulated.
      if (world_.size() > 1 && !is_new) size *= 2;
    }
    refine_what_is_left();
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

  /// Estimates points, each on one rank. Returns the estimates by position. Collective.
  std::vector<Estimate> estimate(std::span<const std::size_t> positions, bool is_quick) {
    std::vector<Estimate> mine;
    world_.agree([&] {
      const auto step = static_cast<std::size_t>(world_.size());
      for (std::size_t k = static_cast<std::size_t>(world_.rank().value()); k < positions.size(); k += step) {
        const Point point = run_.points[positions[k]];
        const auto settings = settings_of(point);
        auto found = is_quick ? estimator_.estimate_quickly(*run_.variants, settings)
                              : estimator_.estimate(*run_.variants, settings);
        if (!found.settled)
          if (const explore::Expression* const broken = broken_limit(run_.study, point, found.estimate))
            found.settled = Trial::ended(TrialStatus::excluded, broken->text());
        mine.push_back({positions[k], found.estimate, found.settled.has_value(), found.is_best});
        if (found.settled) mine_.insert_or_assign(point.number, std::move(*found.settled));
      }
    });
    auto all = world_.all_gather(std::span<const Estimate>(mine));
    std::ranges::sort(all, {}, &Estimate::position);
    return all;
  }

  /// Makes the quick estimates of all points. Collective.
  void estimate_all() {
    std::vector<std::size_t> all(run_.points.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    quick_ = estimate(all, true);
    std::size_t unbounded = 0;
    for (const Estimate& estimate : quick_) {
      if (estimate.is_settled || run_.journal.known().contains(run_.points.number(estimate.position))) continue;
      queue_.emplace(estimate.of_trial.step, estimate.position);
      unbounded += estimate.of_trial.step == Time::zero();
    }
    if (unbounded > 0 && world_.is_root())
      spdlog::warn(
          "{} of {} configurations have no bound of their time and are simulated in any case "
          "(docs/exploration.md, Bounds)",
          unbounded, quick_.size());
  }
  /// Returns the best of the estimates of a point so far.
  const Estimate& estimate_of(std::size_t position) const {
    const auto refined = refined_.find(position);
    return refined == refined_.end() ? quick_[position] : refined->second;
  }
  bool is_ruled_out(const Estimate& estimate) const {
    return incumbents_.rules_out(bounds_of_objectives(estimate.of_trial));
  }
  /// Makes the best estimates of points. Collective.
  void refine(std::span<const std::size_t> positions) {
    for (Estimate& better : estimate(positions, false)) refined_.insert_or_assign(better.position, better);
  }
  /// Makes the best estimates of points that are to be stored with them: those that earlier jobs have simulated.
  /// Collective.
  void refine_what_is_left() {
    std::vector<std::size_t> left;
    for (const Estimate& quick : quick_)
      if (!quick.is_settled && !estimate_of(quick.position).is_best && !is_ruled_out(quick))
        left.push_back(quick.position);
    refine(left);
  }

  /// Returns the points to simulate next: positions of those with the least bounds. Collective.
  std::vector<std::size_t> next_round(std::size_t size) {
    const std::size_t at_a_time = world_.size() == 1 ? 1 : 16 * static_cast<std::size_t>(world_.size());
    for (;;) {
      std::vector<std::size_t> round, not_refined;
      while (!queue_.empty() && round.size() < size && not_refined.size() < at_a_time) {
        const std::size_t position = queue_.top().second;
        const Estimate& estimate = estimate_of(position);
        if (!is_ruled_out(estimate)) {
          if (!(estimate.is_best ? not_refined : round).empty()) break;
          (estimate.is_best ? round : not_refined).push_back(position);
        }
        queue_.pop();
      }
      if (not_refined.empty()) return round;
      refine(not_refined);
      for (const std::size_t position : not_refined)
        if (const Estimate& better = estimate_of(position); !better.is_settled)
          queue_.emplace(std::max(better.of_trial.step, quick_[position].of_trial.step), position);
    }
  }
  /// Simulates points, whose work the ranks share evenly. Returns whether one of them is among the best so far.
  /// Collective.
  bool simulate(std::vector<std::size_t> round) {
    std::ranges::stable_sort(round, std::greater<>(), [&](std::size_t i) { return estimate_of(i).of_trial.work; });
    std::vector<double> loads(static_cast<std::size_t>(world_.size()));
    std::vector<std::size_t> own;
    for (const std::size_t i : round) {
      const auto least = std::ranges::min_element(loads);
      *least += estimate_of(i).of_trial.work;
      if (least - loads.begin() == world_.rank().value()) own.push_back(i);
    }
    parallel::Packer packer;
    bool has_stopped = false;
    world_.agree([&] {
      for (const std::size_t i : own) {
        const Point point = run_.points[i];
        has_stopped = !simulate_point(run_, point, mine_);
        if (has_stopped) return;
        const Trial& trial = mine_.at(point.number);
        require_above_bounds(point.number, trial, estimate_of(i).of_trial);
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
  /// Returns all rows. What a row says follows from the estimates and from the best trials alone: the quick estimate
  /// counts where it settles the point or rules it out, else the best one. Collective.
  StudyTrials collect() {
    Trials trials = gather_trials(run_, mine_, world_);
    StudyTrials result;
    if (!world_.is_root()) return result;
    for (const Estimate& quick : quick_) {
      const bool is_quick = quick.is_settled || is_ruled_out(quick);
      const Estimate& best = estimate_of(quick.position);
      const Estimate& estimate = is_quick ? quick : best;
      Row row{run_.points.number(quick.position), Trial::ended(TrialStatus::ruled_out, ""),
              estimate.of_trial.bound("step_time")};
      const auto found = trials.find(row.number);
      if (found != trials.end()) {
        if (estimate.is_settled || !is_ruled_out(estimate))
          row.trial = std::move(found->second);
        else if (!best.is_settled)
          result.extra.push_back(row.number);
      }
      result.rows.push_back(std::move(row));
    }
    return result;
  }

  const StudyRun& run_;
  parallel::Communicator& world_;
  explore::Incumbents incumbents_;
  TrialEstimator estimator_;
  std::vector<Estimate> quick_;                        ///< [points]
  std::unordered_map<std::size_t, Estimate> refined_;  ///< best estimates, by position
  /// Points that are to be tried: bounds of the time and positions, the least first.
  std::priority_queue<std::pair<Time, std::size_t>, std::vector<std::pair<Time, std::size_t>>, std::greater<>> queue_;
  Trials mine_;
};

}  // namespace

StudyTrials simulate_bounded(const StudyRun& run, parallel::Communicator& world) {
  return BoundedSearch(run, world).search();
}

}  // namespace orrery::app
