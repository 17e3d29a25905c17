#include "orrery/results/repetitions.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::results {
namespace {

// The values of a printed table of Student's distribution, for both sides.
TEST(Repetitions, StudentsDistributionIsThatOfTables) {
  EXPECT_NEAR(student_t(1, 0.95), 12.7062047, 1e-6);
  EXPECT_NEAR(student_t(2, 0.95), 4.30265273, 1e-7);
  EXPECT_NEAR(student_t(3, 0.95), 3.18244631, 1e-7);
  EXPECT_NEAR(student_t(4, 0.95), 2.77644511, 1e-7);
  EXPECT_NEAR(student_t(9, 0.95), 2.26215716, 1e-7);
  EXPECT_NEAR(student_t(9, 0.99), 3.24983554, 1e-7);
  EXPECT_NEAR(student_t(99, 0.95), 1.98421695, 1e-7);
  EXPECT_NEAR(student_t(100000, 0.95), 1.95998772, 1e-6);
}

// 10, 12, 14 and 16 ps: the mean is 13, the squares of the deviations add up to 20, and t of 3 degrees of freedom is
// 3.182446.
TEST(Repetitions, FiguresByHand) {
  std::vector<Repetition> all;
  for (const std::int64_t ps : {14, 10, 16, 12}) all.push_back({1, Time::from_ps(ps)});
  const auto figures = figures_of(all);
  EXPECT_NEAR(figures.mean, 13, 1e-12);
  EXPECT_NEAR(figures.deviation, 2.581988897, 1e-9);
  EXPECT_EQ(figures.least, 10);
  EXPECT_EQ(figures.most, 16);
  EXPECT_NEAR(figures.low, 13 - 4.108521, 1e-5);
  EXPECT_NEAR(figures.high, 13 + 4.108521, 1e-5);
}

// Equal times leave nothing undecided.
TEST(Repetitions, EqualTimesHaveNoInterval) {
  const std::vector<Repetition> all(3, {1, Time::from_ps(7)});
  const auto figures = figures_of(all);
  EXPECT_EQ(figures.deviation, 0);
  EXPECT_EQ(figures.low, figures.high);
}

}  // namespace
}  // namespace orrery::results
