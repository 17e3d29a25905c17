#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "dry_run.hpp"
#include "orrery/base/error.hpp"
#include "orrery/explore/ranking.hpp"
#include "orrery/parallel/packing.hpp"
#include "study_table.hpp"
#include "study_trials.hpp"
#include "task_pool.hpp"

namespace orrery::study {
namespace {

using explore::Point;

/// What is known of a point before it is simulated.
struct Estimate {
  std::uint64_t position = 0;  ///< position of the point
  TrialEstimate of_trial = {};
  bool is_settled = false;  ///< no simulation can make it one of the best
  bool is_best = false;     ///< no better estimate is known
};

/// Finds what may be among the best, by bounds. Each point has a quick estimate. The best one, which costs more, is
/// made where the quick one does not rule the point out. Rank 0 knows the estimates and says what is done next: first
/// the quick estimates; then simulations, those with the least bounds first; then the best estimates of points that
/// earlier jobs have simulated, which are stored with them.
class BoundedSearch : private TaskPool::Tasks {
 public:
  BoundedSearch(const StudyRun& run, parallel::Communicator& world)
      : run_(run),
        world_(world),
        pool_(world),
        incumbents_(run.study.objectives, run.study.keep),
        estimator_(needs_flops(run.study)) {}

  StudyTrials search() {
    if (world_.is_root()) quick_.resize(run_.points.size());
    for (const auto& [number, trial] : run_.journal.known()) add_incumbent(trial);
    StudyRun serving = run_;  // rank 0 answers others while it simulates
    serving.stop_requested = [this] {
      pool_.serve();
      return run_.stop_requested();
    };
    bool has_stopped = false;
    world_.agree([&] {
      has_stopped = !pool_.run(this, [&](std::span<const std::byte> task) { return work_on(task, serving); });
    });
    end_stopped_study(run_, has_stopped, mine_.size(), world_);
    return collect();
  }

 private:
  /// What a task is; positions of points follow, and for a simulation the estimate of the point.
  enum class Task : std::uint8_t { quick_estimates, best_estimates, simulation };

  // What follows are the tasks, on rank 0.

  std::optional<TaskPool::Message> next() override {
    if (num_given_ < quick_.size()) {
      std::vector<std::uint64_t> block(std::min(quick_.size() - num_given_, points_at_a_time));
      std::iota(block.begin(), block.end(), std::uint64_t{num_given_});
      num_given_ += block.size();
      return task(Task::quick_estimates, block);
    }
    if (num_estimated_ < quick_.size()) return {};
    if (!std::exchange(has_queue_, true)) fill_queue();
    if (auto next = next_of_queue()) return next;
    if (num_under_way_ > 0 && !has_left_) return {};
    if (!std::exchange(has_left_, true)) find_what_is_left();
    if (left_.empty()) return {};
    const std::size_t rest = left_.size() - std::min(left_.size(), estimates_at_a_time());
    const std::vector<std::uint64_t> last(left_.begin() + static_cast<std::ptrdiff_t>(rest), left_.end());
    left_.resize(rest);
    return task(Task::best_estimates, last);
  }
  /// Takes estimates, or the metrics of a simulation.
  void take(std::span<const std::byte> result) override {
    --num_under_way_;
    parallel::Unpacker unpacker(result);
    const auto kind = unpacker.get<Task>();
    if (kind == Task::simulation) {
      Trial trial;
      trial.status = unpacker.get<TrialStatus>();
      trial.metrics = unpacker.get_all<double>();
      return add_incumbent(trial);
    }
    for (const Estimate& estimate : unpacker.get_all<Estimate>()) {
      const std::size_t position = estimate.position;
      if (kind == Task::quick_estimates) {
        quick_[position] = estimate;
        ++num_estimated_;
        continue;
      }
      refined_.insert_or_assign(position, estimate);
      if (!estimate.is_settled && !has_left_)
        queue_.emplace(std::max(rank_of(estimate), rank_of(quick_[position])), position);
    }
  }

  TaskPool::Message task(Task kind, std::span<const std::uint64_t> positions) {
    parallel::Packer packer;
    packer.put(kind);
    packer.put_all(positions);
    if (kind == Task::simulation) packer.put(estimate_of(positions.front()).of_trial);
    ++num_under_way_;
    return packer.take();
  }
  std::size_t estimates_at_a_time() const { return world_.size() == 1 ? 1 : 8; }
  /// Returns the next task of the queue: to simulate the point with the least bound, or to estimate it and others
  /// better.
  std::optional<TaskPool::Message> next_of_queue() {
    std::vector<std::uint64_t> not_refined;
    while (!queue_.empty() && not_refined.size() < estimates_at_a_time()) {
      const std::uint64_t position = queue_.top().second;
      const Estimate& estimate = estimate_of(position);
      if (!is_ruled_out(estimate)) {
        if (estimate.is_best && !not_refined.empty()) break;
        if (!estimate.is_best) not_refined.push_back(position);
        if (estimate.is_best) {
          queue_.pop();
          return task(Task::simulation, std::span(&position, 1));
        }
      }
      queue_.pop();
    }
    if (not_refined.empty()) return {};
    return task(Task::best_estimates, not_refined);
  }
  /// Returns by what a point is simulated before others, the least first: the bound of the only objective, else that of
  /// the time.
  double rank_of(const Estimate& estimate) const {
    const auto& objectives = run_.study.objectives;
    const double seconds = estimate.of_trial.step.seconds();
    if (objectives.size() > 1) return seconds;
    const double bound = bound_of(estimate, objectives.front());
    return std::isnan(bound) ? seconds : objectives.front().is_maximised ? -bound : bound;
  }
  /// Warns of objectives that rule nothing out.
  void warn_of_objectives() const {
    for (const auto& objective : run_.study.objectives)
      if (!TrialEstimate::knows(objective.metric))
        spdlog::warn(
            "{} has no bound, so nothing is ruled out: all configurations that no limit excludes are simulated, as "
            "with "
            "grid (docs/exploration.md, Bounds)",
            objective.metric);
      else if (TrialEstimate::is_most(objective.metric) != objective.is_maximised)
        spdlog::warn(
            "{} has a bound for the other direction, so nothing is ruled out: all configurations that no limit "
            "excludes "
            "are simulated, as with grid (docs/exploration.md, Bounds)",
            objective.metric);
  }
  void fill_queue() {
    warn_of_objectives();
    std::size_t unbounded = 0;
    for (const Estimate& estimate : quick_) {
      if (estimate.is_settled || run_.journal.known().contains(run_.points.number(estimate.position))) continue;
      queue_.emplace(rank_of(estimate), estimate.position);
      unbounded += estimate.of_trial.step == Time::zero();
    }
    if (unbounded > 0)
      spdlog::warn(
          "{} of {} configurations have no bound of their time and are simulated in any case "
          "(docs/exploration.md, Bounds)",
          unbounded, quick_.size());
  }
  void find_what_is_left() {
    for (const Estimate& quick : quick_)
      if (!quick.is_settled && !estimate_of(quick.position).is_best && !is_ruled_out(quick))
        left_.push_back(quick.position);
  }
  /// Returns the best of the estimates of a point so far.
  const Estimate& estimate_of(std::size_t position) const {
    const auto refined = refined_.find(position);
    return refined == refined_.end() ? quick_[position] : refined->second;
  }
  std::vector<double> bounds_of(const Estimate& estimate) const {
    std::vector<double> bounds;
    for (const auto& objective : run_.study.objectives) bounds.push_back(bound_of(estimate, objective));
    return bounds;
  }
  /// Returns what an objective is not better than; NaN if nothing is known, or only what it is not worse than.
  static double bound_of(const Estimate& estimate, const explore::Objective& objective) {
    const bool is_of_use = TrialEstimate::is_most(objective.metric) == objective.is_maximised;
    return is_of_use ? estimate.of_trial.bound(objective.metric) : std::nan("");
  }
  bool is_ruled_out(const Estimate& estimate) const { return incumbents_.rules_out(bounds_of(estimate)); }
  /// Returns the estimate that counts: the quick one where it settles the point or rules it out, else the best one.
  const Estimate& decisive(const Estimate& quick) const {
    return quick.is_settled || is_ruled_out(quick) ? quick : estimate_of(quick.position);
  }
  void add_incumbent(const Trial& trial) {
    std::vector<double> metrics;
    for (const auto& objective : run_.study.objectives)
      metrics.push_back(trial.status == TrialStatus::done ? trial.metrics[index_of_metric(objective.metric)]
                                                          : std::nan(""));
    incumbents_.add(std::move(metrics));
  }

  // What follows is the work on tasks, on any rank.

  std::optional<TaskPool::Message> work_on(std::span<const std::byte> task, const StudyRun& serving) {
    if (run_.stop_requested()) return {};
    parallel::Unpacker unpacker(task);
    const auto kind = unpacker.get<Task>();
    const auto positions = unpacker.get_all<std::uint64_t>();
    parallel::Packer packer;
    packer.put(kind);
    if (kind == Task::simulation) {
      pool_.ask_early();
      const auto trial = simulate(positions.front(), unpacker.get<TrialEstimate>(), serving);
      if (!trial) return {};
      packer.put(trial->status);
      packer.put_all(std::span<const double>(trial->metrics));
      return packer.take();
    }
    std::vector<Estimate> estimates;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      pool_.serve();
      if (i + 1 == positions.size()) pool_.ask_early();
      estimates.push_back(estimate(positions[i], kind == Task::quick_estimates));
    }
    packer.put_all(std::span<const Estimate>(estimates));
    return packer.take();
  }
  Estimate estimate(std::size_t position, bool is_quick) {
    const Point point = run_.points[position];
    const auto settings = settings_of(point);
    auto found = is_quick ? estimator_.estimate_quickly(*run_.variants, settings)
                          : estimator_.estimate(*run_.variants, settings);
    if (!found.settled)
      if (const explore::Expression* const broken = broken_limit(run_.study, point, found.estimate))
        found.settled = Trial::ended(TrialStatus::excluded, broken->text());
    const Estimate estimate{position, found.estimate, found.settled.has_value(), found.is_best};
    if (found.settled) mine_.insert_or_assign(point.number, std::move(*found.settled));
    return estimate;
  }
  /// Returns the trial; null if a stop on request ended it.
  const Trial* simulate(std::size_t position, const TrialEstimate& estimate, const StudyRun& serving) {
    const Point point = run_.points[position];
    if (!simulate_point(serving, point, mine_)) return nullptr;
    const Trial& trial = mine_.at(point.number);
    require_above_bounds(point.number, trial, estimate);
    return &trial;
  }

  /// Returns all rows. What a row says follows from the estimates and from the best trials alone. Collective.
  StudyTrials collect() {
    Trials trials = gather_trials(std::move(mine_), world_);
    StudyTrials result;
    if (!world_.is_root()) return result;
    result.rows.reserve(quick_.size());
    for (const Estimate& quick : quick_) {
      const Estimate& estimate = decisive(quick);
      Row row{run_.points.number(quick.position), Trial::ended(TrialStatus::ruled_out, ""),
              estimate.of_trial.bound("step_time")};
      if (auto trial = taken(row.number, trials, run_.journal)) {
        if (estimate.is_settled || !is_ruled_out(estimate))
          row.trial = std::move(*trial);
        else if (!estimate_of(quick.position).is_settled)
          result.extra.push_back(row.number);
      }
      result.rows.push_back(std::move(row));
    }
    name_better_trials(result.rows);
    warn_if_all_are_simulated(result.rows);
    return result;
  }
  /// Warns of bounds that were too weak to rule anything out.
  void warn_if_all_are_simulated(const std::vector<Row>& rows) const {
    const auto done = std::ranges::count(rows, TrialStatus::done, [](const Row& row) { return row.trial.status; });
    const bool has_ruled_out =
        std::ranges::any_of(rows, [](const Row& row) { return row.trial.status == TrialStatus::ruled_out; });
    if (!has_ruled_out && done > std::int64_t{run_.study.keep})
      spdlog::warn("the bounds have ruled nothing out: {} configurations were simulated, as with grid", done);
  }
  /// Says of rows that are ruled out which of the best trials is better than their bounds: the last one of the top, or
  /// the first one of the front of which this holds.
  void name_better_trials(std::vector<Row>& rows) const {
    auto best = best_rows(run_.study, rows);
    if (run_.study.objectives.size() == 1 && best.size() > 1) best = {best.back()};
    std::vector<explore::Incumbents> each;
    for (const std::size_t row : best)
      each.emplace_back(run_.study.objectives, 1).add(objectives_of(run_.study, rows[row].trial));
    for (const Estimate& quick : quick_) {
      Row& row = rows[quick.position];
      if (row.trial.status != TrialStatus::ruled_out) continue;
      const auto bounds = bounds_of(decisive(quick));
      const auto better = std::ranges::find_if(each, [&](const auto& one) { return one.rules_out(bounds); });
      ensure(better != each.end(), "a point is ruled out by none of the best trials");
      row.trial.text = fmt::format("by trial {}", rows[best[static_cast<std::size_t>(better - each.begin())]].number);
    }
  }

  static constexpr std::size_t points_at_a_time = 256;

  const StudyRun& run_;
  parallel::Communicator& world_;
  TaskPool pool_;
  explore::Incumbents incumbents_;
  TrialEstimator estimator_;
  Trials mine_;  ///< trials of this rank

  // Of rank 0:
  std::vector<Estimate> quick_;                        ///< [points]
  std::size_t num_given_ = 0, num_estimated_ = 0;      ///< quick estimates
  std::unordered_map<std::size_t, Estimate> refined_;  ///< best estimates, by position
  /// Points that are to be tried: rank_of and positions, the least first.
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>, std::greater<>>
      queue_;
  std::size_t num_under_way_ = 0;    ///< tasks without a result
  bool has_queue_ = false;           ///< the queue has been filled
  bool has_left_ = false;            ///< the search has ended, and what is left has been found
  std::vector<std::uint64_t> left_;  ///< positions of points that need their best estimates
};

}  // namespace

StudyTrials simulate_bounded(const StudyRun& run, parallel::Communicator& world) {
  return BoundedSearch(run, world).search();
}

}  // namespace orrery::study
