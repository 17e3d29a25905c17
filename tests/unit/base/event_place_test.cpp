#include "orrery/base/event_place.hpp"

#include <gtest/gtest.h>

#include <utility>

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

}  // namespace
}  // namespace orrery
