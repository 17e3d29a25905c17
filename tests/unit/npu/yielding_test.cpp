#include "yielding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace orrery::npu {
namespace {

constexpr Time us(std::int64_t microseconds) { return Time::from_ns(1000 * microseconds); }

/// Collectives of one set of dimensions, each named by its number.
class YieldingTest : public testing::Test {
 protected:
  Yielding yielding{1};

  void begin(std::uint32_t id, std::size_t tier, std::int64_t at) { yielding.begin(0, tier, NodeId(id), us(at)); }
  Time owed(std::uint32_t id, std::size_t tier, std::int64_t since, std::int64_t now) {
    return yielding.take_owed(0, tier, NodeId(id), us(since), us(now));
  }
};

// A collective of tier 1 takes 9 us from 0 on. Another one of tier 0 uses all of 0 .. 10, but this is known at 10 only.
// So the dimensions work for tier 1 until 19, and the next collective of 5 us, from 12 on, ends at 24.
TEST_F(YieldingTest, WhatBecomesKnownLaterDelaysTheNext) {
  begin(1, 0, 0);
  begin(2, 1, 0);
  EXPECT_EQ(owed(2, 1, 0, 9), us(0));
  EXPECT_EQ(owed(1, 0, 0, 10), us(0));
  begin(3, 1, 12);
  EXPECT_EQ(owed(3, 1, 12, 17), us(7));
  EXPECT_EQ(owed(3, 1, 12, 24), us(0));
}

// The same, but the next one begins at 22, when the dimensions have done all work.
TEST_F(YieldingTest, IdleDimensionsCatchUp) {
  begin(1, 0, 0);
  begin(2, 1, 0);
  EXPECT_EQ(owed(2, 1, 0, 9), us(0));
  EXPECT_EQ(owed(1, 0, 0, 10), us(0));
  begin(3, 1, 22);
  EXPECT_EQ(owed(3, 1, 22, 27), us(0));
}

// Tier 2 yields to tiers 0 and 1, which use 0 .. 4 and 2 .. 8 together. What is used twice counts once.
TEST_F(YieldingTest, TheHighestTierYieldsToBothOthers) {
  begin(1, 0, 0);
  begin(2, 1, 2);
  begin(3, 2, 0);
  EXPECT_EQ(owed(1, 0, 0, 4), us(0));
  EXPECT_EQ(owed(2, 1, 2, 6), us(2));
  EXPECT_EQ(owed(2, 1, 2, 8), us(0));
  EXPECT_EQ(owed(3, 2, 0, 10), us(8));
  EXPECT_EQ(owed(3, 2, 0, 18), us(0));
}

// Two collectives end at 10: the one that yields goes on or ends alike, whichever end is handled first, and the next
// one owes the same.
TEST_F(YieldingTest, TheOrderOfEqualTimesDoesNotMatter) {
  for (const bool other_first : {false, true}) {
    yielding = Yielding(1);
    begin(1, 0, 4);
    begin(2, 1, 0);
    if (other_first) {
      EXPECT_EQ(owed(1, 0, 4, 10), us(0));
    }
    EXPECT_EQ(owed(2, 1, 0, 10), us(0));
    if (!other_first) {
      EXPECT_EQ(owed(1, 0, 4, 10), us(0));
    }
    begin(3, 1, 11);
    EXPECT_EQ(owed(3, 1, 11, 14), us(5));
  }
}

// Random collectives of tier 1 beside random ones of tier 0, each kind one after the other. Dimensions that serve tier
// 0 first have `left` work to do for tier 1. A collective of tier 1 ends when it is done, or earlier if one of tier 0
// is under way or ends at the same time.
TEST_F(YieldingTest, BandwidthIsUsedOnce) {
  std::mt19937 draw(16);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same numbers each time
  const auto up_to = [&](std::uint32_t most) { return static_cast<std::int64_t>(draw() % most); };
  struct Collective {
    std::int64_t begun = 0, since = 0, end = 0;
    std::uint32_t id = 0;
    bool is_under_way = false;
  };
  int num_exact = 0;
  for (int round = 0; round < 300; ++round) {
    yielding = Yielding(1);
    Collective other{.id = 1000}, own{};
    std::int64_t left = 0, done = 0;  // work of tier 1, and when the last of it was done
    for (std::int64_t now = 0; now < 100; ++now) {
      if (other.is_under_way && other.end == now) {
        EXPECT_EQ(owed(other.id, 0, other.since, now), us(0));
        other.is_under_way = false;
      }
      if (own.is_under_way && own.end == now) {
        own.end += owed(own.id, 1, own.since, now).ps() / us(1).ps();
        own.is_under_way = own.end > now;
        if (!own.is_under_way) {
          const bool is_sure = !other.is_under_way && other.end < now;
          if (is_sure) {
            EXPECT_EQ(left, 0);
          }
          if (left == 0) {
            EXPECT_EQ(now, done);
          }
          num_exact += is_sure ? 1 : 0;
        }
      }
      if (!other.is_under_way && up_to(4) == 0) {
        const std::int64_t since = now + up_to(3);
        other = {now, since, since + 1 + up_to(12), other.id + 1, true};
        begin(other.id, 0, now);
      }
      if (!own.is_under_way && up_to(4) == 0) {
        const std::int64_t length = 1 + up_to(9);
        own = {now, now, now + length, own.id + 1, true};
        left += length;
        begin(own.id, 1, now);
      }
      const bool is_used = other.is_under_way && other.since <= now && now < other.end;
      if (!is_used && left > 0 && --left == 0) done = now + 1;
    }
  }
  EXPECT_GT(num_exact, 300);
}

}  // namespace
}  // namespace orrery::npu
