#include "orrery/pdes/least_times.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace orrery::pdes {
namespace {

TEST(LeastTimes, KnowsTheLeastAndItsPlace) {
  // Numbers of times that are and are not powers of two. Times are set in a fixed disorder, and some are taken back.
  for (const std::uint32_t count : {1U, 2U, 3U, 8U, 13U}) {
    LeastTimes times(count);
    std::vector<Time> expected(count, Time::max());
    EXPECT_EQ(times.least(), Time::max());
    EXPECT_EQ(times.first(), 0U);
    for (std::uint32_t i = 0; i < 300; ++i) {
      const std::uint32_t place = i * 7919 % count;
      expected[place] = i % 5 == 4 ? Time::max() : Time::from_ps(i * 104729 % 1009);
      times.set(place, expected[place]);
      const auto least = std::ranges::min_element(expected);
      EXPECT_EQ(times.least(), *least);
      EXPECT_EQ(times.first(), static_cast<std::uint32_t>(least - expected.begin()));
      EXPECT_EQ(times[place], expected[place]);
    }
  }
}

}  // namespace
}  // namespace orrery::pdes
