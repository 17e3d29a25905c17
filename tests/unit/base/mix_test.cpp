#include "orrery/base/mix.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace orrery {
namespace {

// Seeds, NPUs and kinds are small numbers: each pair of them has a value of its own.
TEST(Mix, SmallNumbersDoNotMeet) {
  constexpr std::uint64_t count = 256;
  std::set<std::uint64_t> values;
  for (std::uint64_t seed = 0; seed < count; ++seed)
    for (std::uint64_t word = 0; word < count; ++word) values.insert(mix(seed, word));
  EXPECT_EQ(values.size(), count * count);
}

// A bit more or less of either changes about half of the bits.
TEST(Mix, EveryBitCounts) {
  for (int bit = 0; bit < 64; ++bit) {
    int of_seed = 0, of_word = 0;
    constexpr int tries = 100;
    for (std::uint64_t i = 0; i < tries; ++i) {
      const std::uint64_t flipped = std::uint64_t{1} << bit;
      of_seed += __builtin_popcountll(mix(i, 7) ^ mix(i ^ flipped, 7));
      of_word += __builtin_popcountll(mix(7, i) ^ mix(7, i ^ flipped));
    }
    EXPECT_NEAR(of_seed, tries * 32, tries * 4) << "bit " << bit;
    EXPECT_NEAR(of_word, tries * 32, tries * 4) << "bit " << bit;
  }
}

}  // namespace
}  // namespace orrery
