#include "orrery/explore/ranking.hpp"

#include <algorithm>
#include <cmath>

namespace orrery::explore {

std::vector<std::size_t> best_of(std::span<const std::vector<double>> rows, std::span<const Objective> objectives,
                                 std::size_t keep) {
  // Less is better in each objective.
  const auto cost = [&](std::size_t row, std::size_t objective) {
    return objectives[objective].is_maximised ? -rows[row][objective] : rows[row][objective];
  };
  std::vector<std::size_t> known;
  for (std::size_t row = 0; row < rows.size(); ++row)
    if (std::ranges::none_of(rows[row], [](double metric) { return std::isnan(metric); })) known.push_back(row);
  std::ranges::stable_sort(known, [&](std::size_t a, std::size_t b) {
    for (std::size_t i = 0; i < objectives.size(); ++i)
      if (cost(a, i) != cost(b, i)) return cost(a, i) < cost(b, i);
    return false;
  });
  if (objectives.size() == 1) {
    known.resize(std::min(known.size(), keep));
    return known;
  }
  // Rows are sorted, so only one that stands before can dominate.
  std::vector<std::size_t> front;
  for (const std::size_t row : known) {
    const bool is_dominated = std::ranges::any_of(front, [&](std::size_t other) {
      bool is_better = false;
      for (std::size_t i = 0; i < objectives.size(); ++i) {
        if (cost(other, i) > cost(row, i)) return false;
        is_better |= cost(other, i) < cost(row, i);
      }
      return is_better;
    });
    if (!is_dominated) front.push_back(row);
  }
  return front;
}

}  // namespace orrery::explore
