#include "orrery/base/event_place.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace orrery {
namespace {

constexpr Time ns(std::int64_t count) { return Time::from_ns(count); }

EventPlace first_of(std::uint32_t npu) { return EventPlace::first_of(NpuId(npu)); }

/// Returns what comes of a history if every event schedules one other event a nanosecond later.
EventPlace after_steps(EventPlace history, std::int64_t first, std::int64_t count) {
  for (std::int64_t step = 0; step < count; ++step) history = history.next(ns(first + step), 0);
  return history;
}

/// Returns the history as it is on another rank.
EventPlace copied(EventPlace history) {
  Archive written;
  written(history);
  const auto bytes = written.written();
  Archive read(bytes);
  EventPlace result;
  read(result);
  return result;
}

// The event that was scheduled at 3 ns comes before one that was scheduled at 4 ns, whoever did so.
TEST(EventPlace, WhatWasScheduledFirstIsFirst) { EXPECT_LT(first_of(1).next(ns(3), 0), first_of(0).next(ns(4), 0)); }

// Both events were scheduled at 9 ns, by events of 2 and 1 ns. The second goes back to the earlier event.
TEST(EventPlace, TheEventsThatScheduledThemDecide) {
  EXPECT_LT(first_of(1).next(ns(1), 0).next(ns(9), 0), first_of(0).next(ns(2), 0).next(ns(9), 0));
}

// Two chains of the same times go back to NPUs 1 and 2.
TEST(EventPlace, TheFirstEventsDecideByTheirNpus) {
  EXPECT_LT(after_steps(first_of(1), 5, 20), after_steps(first_of(2), 5, 20));
}

// An event schedules two others, number 1 after number 0. What they lead to at the same time keeps this order, also if
// the later numbers are the other way round.
TEST(EventPlace, WhatOneEventSchedulesKeepsItsOrder) {
  const EventPlace cause = first_of(0).next(ns(1), 0);
  const EventPlace one = cause.next(ns(2), 0), other = cause.next(ns(2), 1);
  EXPECT_LT(one, other);
  EXPECT_EQ(one.beside(), other);
  EXPECT_LT(one.next(ns(3), 7), other.next(ns(3), 4));
  EXPECT_EQ(one.cause(), cause);
}

// A history that was written and read again compares as before, with itself and with others.
TEST(EventPlace, MeansTheSameOnEveryRank) {
  const EventPlace one = after_steps(first_of(3).next(ns(1), 0), 2, 40);
  const EventPlace other = after_steps(first_of(3).next(ns(1), 1), 2, 40);
  EXPECT_EQ(copied(one), one);
  EXPECT_LT(copied(one), other);
  EXPECT_LT(one, copied(other));
  EXPECT_EQ(copied(EventPlace()), EventPlace());
}

// Two chains of equal times begin at 0 and 1 ns. With 511 equal steps the begin still decides; with 512 it does not,
// but the NPUs do. That holds for chains of any length, also on another rank.
TEST(EventPlace, GoesBackSoManySteps) {
  constexpr std::int64_t most = EventPlace::most_steps;
  const EventPlace early = first_of(2).next(ns(0), 0), late = first_of(1).next(ns(1), 0);
  EXPECT_LT(after_steps(early, 2, most - 1), after_steps(late, 2, most - 1));
  for (const std::int64_t steps : {most, 2 * most, 5 * most}) {
    const EventPlace one = after_steps(early, 2, steps), other = after_steps(late, 2, steps);
    EXPECT_LT(other, one) << steps;
    EXPECT_LT(copied(other), one) << steps;
    EXPECT_LT(other, copied(one)) << steps;
  }
}

/// A history as the plain list of its steps, the last one first.
struct PlainHistory {
  std::uint32_t root = 0;
  std::vector<std::pair<std::int64_t, std::uint32_t>> steps;  // since when, and the number

  PlainHistory next(std::int64_t now, std::uint32_t number) const {
    PlainHistory longer = *this;
    longer.steps.insert(longer.steps.begin(), {now, number});
    return longer;
  }
  PlainHistory beside() const {
    PlainHistory other = *this;
    ++other.steps.front().second;
    return other;
  }
  PlainHistory cause() const { return {root, {steps.begin() + 1, steps.end()}}; }

  std::strong_ordering compared(const PlainHistory& other) const {
    auto by_number = std::strong_ordering::equal;
    const std::size_t common = std::min(steps.size(), other.steps.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(common, EventPlace::most_steps); ++i) {
      if (steps[i].first != other.steps[i].first) return steps[i].first <=> other.steps[i].first;
      if (steps[i].second != other.steps[i].second) by_number = steps[i].second <=> other.steps[i].second;
    }
    return root != other.root ? root <=> other.root : by_number;
  }
};

// Histories that branch at random, in few times and numbers, so that most share steps and many are equal for long.
TEST(EventPlace, ComparesLikeAPlainListOfSteps) {
  std::mt19937 random(7);
  std::vector<std::pair<EventPlace, PlainHistory>> all;
  for (std::uint32_t npu = 0; npu < 3; ++npu) all.push_back({first_of(npu), {npu, {{-1, 0}}}});
  for (std::int64_t now = 0; now < 1500; ++now) {
    const auto [place, plain] = all[random() % all.size()];
    const std::uint32_t number = random() % 2;
    switch (random() % 8) {
      case 0:
        all.push_back({place.beside(), plain.beside()});
        break;
      case 1:
        if (place.cause().is_known()) all.push_back({place.cause(), plain.cause()});
        break;
      default:
        all.push_back({place.next(ns(now / 100), number), plain.next(now / 100, number)});
    }
    if (all.size() > 40) all.erase(all.begin() + random() % 37);
    const auto& [one, plain_one] = all.back();
    for (const auto& [other, plain_other] : all) EXPECT_EQ(one <=> other, plain_one.compared(plain_other));
  }
}

// A chain of events in which each schedules one other takes a block for many steps, and frees what is too far back. An
// event that schedules two begins one more block.
TEST(EventPlace, ChainsShareBlocks) {
  const std::uint64_t before = EventPlace::num_blocks();
  EventPlace history = after_steps(first_of(0), 0, EventPlace::most_steps);
  EXPECT_LT(EventPlace::num_blocks() - before, EventPlace::most_steps / 32);
  const std::uint64_t blocks = EventPlace::num_blocks();
  const EventPlace one = history.next(ns(1000), 0);
  const std::uint64_t with_one = EventPlace::num_blocks();
  EXPECT_LE(with_one, blocks + 1);
  const EventPlace other = history.next(ns(1000), 1);
  EXPECT_EQ(EventPlace::num_blocks(), with_one + 1);
  history = after_steps(one, 1001, 100 * std::int64_t{EventPlace::most_steps});
  EXPECT_LT(EventPlace::num_blocks() - before, 4 * EventPlace::most_steps / 32);
}

// Whatever histories shared is freed with the last of them.
TEST(EventPlace, NothingIsLeft) {
  const std::uint64_t before = EventPlace::num_blocks();
  {
    const EventPlace history = after_steps(first_of(1), 0, 3000);
    const EventPlace other = history.cause().beside(), copy = copied(other);
    EXPECT_GT(EventPlace::num_blocks(), before);
  }
  EXPECT_EQ(EventPlace::num_blocks(), before);
}

}  // namespace
}  // namespace orrery
