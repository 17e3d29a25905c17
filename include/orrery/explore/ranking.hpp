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

}  // namespace orrery::explore
