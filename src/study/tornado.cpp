#include "tornado.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "study_table.hpp"

namespace orrery::study {
namespace {

using explore::Choice;
using explore::Point;

constexpr int most_tries = 8;

/// One end of a bar: values from the outermost one on, until one can be used.
struct End {
  std::size_t parameter = 0;
  bool is_high = false;
  std::vector<std::uint32_t> candidates;  ///< the best trial's own value is the last one
  std::size_t next = 0;
  int tries = 0;
  std::optional<double> found = {};  ///< the first objective with candidates[next]
};

/// Finds the bars on rank 0.
class Tornado {
 public:
  Tornado(const StudyRun& run, const std::vector<Row>& rows) : run_(run), rows_(rows) {
    const auto best = best_rows(run.study, rows);
    if (best.empty()) return;
    const auto choice = run.points.choice(best.front());
    best_.assign(choice.begin(), choice.end());
    own_ = objective_of(rows[best.front()].trial);
    for (std::size_t p = 0; p < best_.size(); ++p)
      if (best_[p] != explore::otherwise && run.space.num_values(p) > 1) add_ends(p);
  }

  /// Returns the points to simulate next. `is_tried`: those of the last call are in `trials`.
  std::vector<Point> next(const std::vector<Trial>& trials) {
    for (std::size_t i = 0; i < waiting_.size(); ++i) settle(*waiting_[i], trials[i]);
    waiting_.clear();
    std::vector<Point> points;
    for (End& end : ends_)
      if (auto point = advance(end)) {
        points.push_back(std::move(*point));
        waiting_.push_back(&end);
      }
    return points;
  }

  std::vector<results::TornadoBar> bars() const {
    std::vector<results::TornadoBar> bars;
    for (std::size_t i = 0; i + 1 < ends_.size(); i += 2) {
      const End &low = ends_[i], &high = ends_[i + 1];
      if (low.candidates[low.next] == high.candidates[high.next]) continue;  // no other value can be used
      const auto text = [&](const End& end) { return run_.space.text(end.parameter, end.candidates[end.next]); };
      bars.push_back({run_.study.parameters[low.parameter].name, text(low), text(high), *low.found, *high.found});
    }
    std::ranges::stable_sort(bars, std::greater<>(), [](const auto& bar) { return std::abs(bar.high - bar.low); });
    return bars;
  }

 private:
  double objective_of(const Trial& trial) const { return objectives_of(run_.study, trial).front(); }

  void add_ends(std::size_t parameter) {
    std::vector<std::uint32_t> values(run_.space.num_values(parameter));
    for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = i;
    if (run_.study.parameters[parameter].interval) values = {0, best_[parameter], 1};
    const auto number = [&](std::uint32_t i) { return explore::as_real(run_.space.value(parameter, i)); };
    if (std::ranges::none_of(values, [&](std::uint32_t i) { return std::isnan(number(i)); }))
      std::ranges::stable_sort(values, {}, number);
    const auto own = std::ranges::find(values, best_[parameter]);
    ends_.push_back({.parameter = parameter, .candidates = {values.begin(), own + 1}});
    ends_.push_back({.parameter = parameter, .is_high = true, .candidates = {own, values.end()}});
    std::ranges::reverse(ends_.back().candidates);
  }
  /// Goes on to the next candidate that can be used, and returns it if it has to be simulated.
  std::optional<Point> advance(End& end) {
    while (!end.found) {
      const std::uint32_t value = end.candidates[end.next];
      if (value == best_[end.parameter]) {
        end.found = own_;
        break;
      }
      Choice choice = best_;
      choice[end.parameter] = value;
      auto point = run_.space.at(choice);
      if (!point) {
        ++end.next;
        continue;
      }
      const auto row = run_.points.find(point->choice);
      if (row && rows_[*row].trial.status != TrialStatus::ruled_out) {
        settle(end, rows_[*row].trial);
        continue;
      }
      point->number = row ? rows_[*row].number : unnumbered;
      return point;
    }
    return {};
  }
  void settle(End& end, const Trial& trial) const {
    const double objective = objective_of(trial);
    if (!std::isnan(objective))
      end.found = objective;
    else if (++end.tries < most_tries)
      ++end.next;
    else
      end.next = end.candidates.size() - 1;
  }

  const StudyRun& run_;
  const std::vector<Row>& rows_;
  Choice best_;
  double own_ = 0;             ///< the first objective of the best trial
  std::vector<End> ends_;      ///< low and high of each parameter
  std::vector<End*> waiting_;  ///< for a simulation
};

}  // namespace

std::vector<results::TornadoBar> tornado(const StudyRun& run, const std::vector<Row>& rows,
                                         parallel::Communicator& world) {
  std::optional<Tornado> search;
  std::vector<Point> points;
  world.agree([&] {
    if (!world.is_root()) return;
    search.emplace(run, rows);
    points = search->next({});
  });
  while (true) {
    const auto trials = simulate_points(run, points, world);
    if (trials.empty()) break;
    world.agree([&] {
      if (world.is_root()) points = search->next(trials);
    });
  }
  return search ? search->bars() : std::vector<results::TornadoBar>();
}

}  // namespace orrery::study
