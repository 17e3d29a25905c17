#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "orrery/base/countdowns.hpp"

namespace orrery {
namespace {

// Counts below, at and above what half a byte holds go down in a random order, twice. Each must reach 0 when it was
// taken from as often as it says, and not before.
TEST(Countdowns, AgreeWithPlainCounts) {
  std::mt19937 random(1);
  Countdowns counts;
  for (const std::uint32_t size : {101U, 64U}) {
    std::vector<std::uint32_t> left;
    for (std::uint32_t i = 0; i < size; ++i) left.push_back(1 + i % 40);
    counts.restart(size, [&](std::uint32_t i) { return left[i]; });
    std::vector<std::uint32_t> open(size);
    for (std::uint32_t i = 0; i < size; ++i) open[i] = i;
    while (!open.empty()) {
      const std::size_t at = random() % open.size();
      const std::uint32_t i = open[at];
      --left[i];
      EXPECT_EQ(counts.count_down(i), left[i] == 0) << "count " << i;
      if (left[i] == 0) open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
}

}  // namespace
}  // namespace orrery
