#include "orrery/results/kernel_figures.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::results {
namespace {

results::KernelRecord rank(std::uint64_t events, std::uint64_t data, std::uint64_t null, double blocked, double busy) {
  results::KernelRecord record;
  record.events = events;
  record.data_messages = data;
  record.null_messages = null;
  record.blocked_time = blocked;
  record.busy_time = busy;
  record.critical_path = events / 2;
  record.peak_pending_events = events / 10;
  return record;
}

KernelFigures figures_of(const std::vector<results::KernelRecord>& ranks) { return kernel_figures(ranks); }

// Two ranks have different counts. The figures follow from the sums, and from the largest values of a rank.
TEST(KernelFigures, AreThoseOfAllRanks) {
  const auto figures = figures_of({rank(1000, 10, 4, 1, 3), rank(600, 6, 4, 2, 2)});
  EXPECT_EQ(figures.total.events, 1600U);
  EXPECT_EQ(figures.total.critical_path, 500U);
  EXPECT_EQ(figures.total.peak_pending_events, 100U);
  EXPECT_DOUBLE_EQ(figures.null_per_data, 0.5);
  EXPECT_DOUBLE_EQ(figures.null_per_100_events, 0.5);
  EXPECT_DOUBLE_EQ(figures.messages_per_100_events, 1.5);
  EXPECT_DOUBLE_EQ(figures.blocked_share, 0.375);
  EXPECT_DOUBLE_EQ(figures.efficiency, 0.8);
  EXPECT_DOUBLE_EQ(figures.best_speedup, 3.2);
}

// Rules name what limits a run. One case for each rule shows that it names its limit.
TEST(KernelFigures, TheLimitFollowsItsRules) {
  EXPECT_EQ(figures_of({rank(1000, 0, 0, 0, 1)}).limit, Limit::one_rank);
  EXPECT_EQ(figures_of({rank(1000, 1, 0, 0, 1), rank(200, 1, 0, 0.8, 0.2)}).limit, Limit::imbalance);
  EXPECT_EQ(figures_of({rank(1000, 5, 20, 0.5, 1), rank(1000, 5, 20, 0.5, 1)}).limit, Limit::messages);
  EXPECT_EQ(figures_of({rank(1000, 200, 2, 0, 1), rank(1000, 200, 2, 0, 1)}).limit, Limit::messages);
  EXPECT_EQ(figures_of({rank(1000, 5, 2, 0.5, 1), rank(1000, 5, 2, 0.5, 1)}).limit, Limit::waiting);
  EXPECT_EQ(figures_of({rank(1000, 5, 2, 0.01, 1), rank(1000, 5, 2, 0.01, 1)}).limit, Limit::work);
}

// Two ranks have no events. No figure divides by zero.
TEST(KernelFigures, AnEmptyRunHasThemToo) {
  const auto figures = figures_of({rank(0, 0, 0, 0, 0), rank(0, 0, 0, 0, 0)});
  EXPECT_DOUBLE_EQ(figures.null_per_data, 0);
  EXPECT_DOUBLE_EQ(figures.efficiency, 1);
  EXPECT_DOUBLE_EQ(figures.best_speedup, 1);
}

}  // namespace
}  // namespace orrery::results
