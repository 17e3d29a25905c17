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

Incumbents::Incumbents(std::span<const Objective> objectives, std::size_t keep)
    : objectives_(objectives), keep_(keep) {}

std::vector<double> Incumbents::costs(std::span<const double> metrics) const {
  std::vector<double> costs;
  for (std::size_t i = 0; i < metrics.size(); ++i)
    costs.push_back(objectives_[i].is_maximised ? -metrics[i] : metrics[i]);
  return costs;
}

void Incumbents::add(std::vector<double> metrics) {
  if (std::ranges::any_of(metrics, [](double metric) { return std::isnan(metric); })) return;
  if (objectives_.size() > 1) {
    if (rules_out(metrics)) return;
    best_.push_back(costs(metrics));
    return;
  }
  best_.push_back(costs(metrics));
  std::ranges::push_heap(best_);
  if (best_.size() <= keep_) return;
  std::ranges::pop_heap(best_);
  best_.pop_back();
}

bool Incumbents::rules_out(std::span<const double> bounds) const {
  const std::vector<double> least = costs(bounds);
  if (objectives_.size() == 1) return best_.size() == keep_ && least[0] > best_.front()[0];
  return std::ranges::any_of(best_, [&](const std::vector<double>& other) {
    bool is_better = false;
    for (std::size_t i = 0; i < least.size(); ++i) {
      if (!(other[i] <= least[i])) return false;
      is_better |= other[i] < least[i];
    }
    return is_better;
  });
}

}  // namespace orrery::explore
