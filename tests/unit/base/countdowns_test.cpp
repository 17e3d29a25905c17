#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "orrery/base/countdowns.hpp"

namespace orrery {
namespace {

// Counts that take no memory, a bit, half a byte and more go down in a random order, twice by each plan. Each must
// reach 0 when it was taken from as often as it says, and not before.
TEST(Countdowns, AgreeWithPlainCounts) {
  std::mt19937 random(1);
  Countdowns counts;
  for (const std::uint32_t size : {101U, 64U}) {
    std::vector<std::uint32_t> left;
    for (std::uint32_t i = 0; i < size; ++i) left.push_back(1 + i % 40);
    const CountdownPlan plan(size, [&](std::uint32_t i) { return left[i]; });
    for (int round = 0; round < 2; ++round) {
      counts.restart(plan);
      auto rest = left;
      std::vector<std::uint32_t> open(size);
      std::iota(open.begin(), open.end(), 0);
      while (!open.empty()) {
        const std::size_t at = random() % open.size();
        const std::uint32_t i = open[at];
        --rest[i];
        EXPECT_EQ(counts.count_down(plan, i), rest[i] == 0) << "count " << i;
        if (rest[i] == 0) open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }
}

}  // namespace
}  // namespace orrery
