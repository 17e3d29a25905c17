#include "orrery/pdes/deferred_events.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace orrery::pdes {
namespace {

Event at(std::int64_t ps, std::uint32_t target) {
  return Event::make(Time::from_ps(ps), Stage::client, LpId(target), static_cast<std::uint64_t>(ps), LpId(target));
}

/// Returns the times of the events of an LP that are released, ascending.
std::vector<std::int64_t> released(DeferredEvents& events, std::uint32_t lp) {
  std::vector<std::int64_t> times;
  events.release(LpId(lp), [&](const Event& event) { times.push_back(event.time.ps()); });
  std::ranges::sort(times);
  return times;
}

// LP 1 has events at 30 and 10 ps, LP 2 one at 20 ps. The earliest event moves to LP 2 when LP 1 is released.
TEST(DeferredEvents, TheEarliestEventOfAllLpsIsKnown) {
  DeferredEvents events(4);
  EXPECT_EQ(events.time(), Time::max());
  events.defer(at(30, 1));
  events.defer(at(20, 2));
  EXPECT_EQ(events.first_lp(), LpId(2));
  events.defer(at(10, 1));
  EXPECT_EQ(events.time(), Time::from_ps(10));
  EXPECT_EQ(events.first_lp(), LpId(1));
  EXPECT_EQ(events.size(), 3U);
  EXPECT_EQ(released(events, 1), (std::vector<std::int64_t>{10, 30}));
  EXPECT_EQ(events.time(), Time::from_ps(20));
  EXPECT_FALSE(events.holds(LpId(1)));
  EXPECT_TRUE(events.holds(LpId(2)));
  EXPECT_EQ(released(events, 2), std::vector<std::int64_t>{20});
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(events.time(), Time::max());
}

// An LP that is released and set aside again with a later event must not be found at its old time.
TEST(DeferredEvents, AnLpThatIsSetAsideAgainHasItsNewTime) {
  DeferredEvents events(4);
  events.defer(at(10, 1));
  events.defer(at(20, 2));
  released(events, 1);
  events.defer(at(40, 1));
  EXPECT_EQ(events.first_lp(), LpId(2));
  released(events, 2);
  EXPECT_EQ(events.time(), Time::from_ps(40));
}

// Random calls against a plain map.
TEST(DeferredEvents, ItAgreesWithAPlainMap) {
  std::mt19937 random(3);
  DeferredEvents events(8);
  std::map<std::uint32_t, std::vector<std::int64_t>> expected;
  for (int round = 0; round < 3000; ++round) {
    const auto lp = static_cast<std::uint32_t>(random() % 8);
    if (random() % 3 > 0) {
      const auto ps = static_cast<std::int64_t>(random() % 50);
      events.defer(at(ps, lp));
      expected[lp].push_back(ps);
    } else {
      std::ranges::sort(expected[lp]);
      ASSERT_EQ(released(events, lp), expected[lp]);
      expected[lp].clear();
    }
    Time least = Time::max();
    for (const auto& [of_lp, times] : expected)
      for (const auto ps : times) least = std::min(least, Time::from_ps(ps));
    ASSERT_EQ(events.time(), least);
    if (least != Time::max()) {
      ASSERT_TRUE(std::ranges::count(expected[events.first_lp().value()], least.ps()));
    }
  }
}

}  // namespace
}  // namespace orrery::pdes
