#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "orrery/explore/study.hpp"

namespace orrery::explore {

/// Returns the positions of the best rows. With one objective they are the `keep` best, the best first. With several
/// they are the Pareto front: all rows than which no other one is as good in all objectives and better in one. `rows`:
/// [trials][objectives] metrics, NaN where one is not known, which leaves the row out. Of equal rows the one that
/// stands first goes first. O(rows * log(rows)), with several objectives O(rows * front).
std::vector<std::size_t> best_of(std::span<const std::vector<double>> rows, std::span<const Objective> objectives,
                                 std::size_t keep);

/// The best trials so far, against which bounds exclude further ones.
class Incumbents {
 public:
  /// As `best_of` has them.
  Incumbents(std::span<const Objective> objectives, std::size_t keep);

  /// Adds the metrics [objectives] of a trial; one with NaN does not count. O(trials of the front, or log(keep)).
  void add(std::vector<double> metrics);
  /// Says whether no trial can be among the best whose metrics are as good as `bounds` [objectives], or worse. With one
  /// objective `keep` others are better; with several one of them is as good in all and better in one. NaN is no bound.
  bool rules_out(std::span<const double> bounds) const;

 private:
  std::vector<double> costs(std::span<const double> metrics) const;  ///< less is better

  std::span<const Objective> objectives_;
  std::size_t keep_;
  std::vector<std::vector<double>> best_;  ///< with one objective a heap, the worst one first
};

}  // namespace orrery::explore
