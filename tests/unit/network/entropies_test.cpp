// The entropies of UEC: which of them REPS takes again, and when.
#include "packet/transports/entropies.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace orrery::network {
namespace {

using Feedback = Entropies::Feedback;

std::vector<std::uint16_t> take(Entropies& entropies, int count) {
  std::vector<std::uint16_t> values;
  for (int i = 0; i < count; ++i) values.push_back(entropies.next());
  return values;
}

// The first values are drawn. Of ten that come back without a mark the last eight are used, each once.
TEST(Entropies, RepsUsesTheLastEightOnce) {
  Entropies entropies(Spraying::reps, 7);
  const auto first = take(entropies, 64);
  EXPECT_LT(std::set(first.begin(), first.end()).size(), 64U);
  for (std::uint16_t value = 20; value < 30; ++value) entropies.feed_back(value, Feedback::good, Time::zero());
  entropies.feed_back(1, Feedback::mark, Time::zero());
  entropies.feed_back(2, Feedback::loss, Time::zero());
  EXPECT_EQ(take(entropies, 8), (std::vector<std::uint16_t>{22, 23, 24, 25, 26, 27, 28, 29}));
  const auto drawn = take(entropies, 64);
  EXPECT_GT(std::set(drawn.begin(), drawn.end()).size(), 16U);
}

// After a time-out the values that are known are used in turn, used ones too. 10 ms later 16 values are drawn first.
TEST(Entropies, RepsFreezesAfterATimeOut) {
  Entropies entropies(Spraying::reps, 7);
  for (std::uint16_t value = 20; value < 23; ++value) entropies.feed_back(value, Feedback::good, Time::zero());
  EXPECT_EQ(take(entropies, 2), (std::vector<std::uint16_t>{20, 21}));
  entropies.feed_back(5, Feedback::time_out, Time::zero());
  EXPECT_EQ(take(entropies, 5), (std::vector<std::uint16_t>{20, 21, 22, 20, 21}));
  entropies.feed_back(40, Feedback::good, Time::from_ns(10'000'001));
  const auto drawn = take(entropies, 16);
  EXPECT_GT(std::set(drawn.begin(), drawn.end()).size(), 4U);
  EXPECT_EQ(entropies.next(), 40);
}

// Mixed keeps all values that came back without a mark.
TEST(Entropies, MixedKeepsAll) {
  Entropies entropies(Spraying::mixed, 7);
  for (std::uint16_t value = 20; value < 30; ++value) entropies.feed_back(value, Feedback::good, Time::zero());
  EXPECT_EQ(take(entropies, 10), (std::vector<std::uint16_t>{20, 21, 22, 23, 24, 25, 26, 27, 28, 29}));
}

}  // namespace
}  // namespace orrery::network
