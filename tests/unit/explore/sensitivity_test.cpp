#include "orrery/explore/sensitivity.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace orrery::explore {
namespace {

// A metric that is 10 a + b over all combinations of a = 0, 1 and b = 0, 1: its variance is 25 + 0.25, and 25 of it is
// due to a.
TEST(MainEffect, IsTheShareOfTheVariance) {
  const std::vector<double> metric{0, 1, 10, 11, std::nan("")};
  EXPECT_DOUBLE_EQ(main_effect(std::vector<std::string>{"0", "0", "1", "1", "5"}, metric), 25 / 25.25);
  EXPECT_DOUBLE_EQ(main_effect(std::vector<std::string>{"no", "yes", "no", "yes", "no"}, metric), 0.25 / 25.25);
}

// One trial, and a metric that is the same in all, have no variance to share.
TEST(MainEffect, IsUnknownWithoutVariance) {
  EXPECT_TRUE(std::isnan(main_effect(std::vector<std::string>{"1"}, std::vector<double>{3})));
  EXPECT_TRUE(std::isnan(main_effect(std::vector<std::string>{"1", "2", "3"}, std::vector<double>{0.1, 0.1, 0.1})));
}

// Of 1,000 samples of two numbers only the first one counts: many numbers are taken together, else each would explain
// all.
TEST(MainEffect, ManyNumbersAreClasses) {
  std::vector<std::string> first, second;
  std::vector<double> metric;
  for (int i = 0; i < 1000; ++i) {
    first.push_back(std::to_string(i * 0.5));
    second.push_back(std::to_string(i * 7919 % 1000 * 0.25));
    metric.push_back(i);
  }
  EXPECT_NEAR(main_effect(first, metric), 0.99, 0.001);
  EXPECT_LT(main_effect(second, metric), 0.05);
}

}  // namespace
}  // namespace orrery::explore
