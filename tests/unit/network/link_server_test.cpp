#include "orrery/network/link_server.hpp"

#include <gtest/gtest.h>

namespace orrery::network {
namespace {

Time ns(std::int64_t count) { return Time::from_ns(count); }

// Messages come at 5, 5, 7, 15 and 60 ns. Each waits until the link has served those before it.
TEST(LinkServer, ServesOneAfterTheOtherAndCounts) {
  LinkServer link;
  EXPECT_EQ(link.serve(ns(5), ns(10), Bytes(100)), ns(5));
  EXPECT_EQ(link.serve(ns(5), ns(10), Bytes(100)), ns(15));  // waits 10
  EXPECT_EQ(link.serve(ns(7), ns(20), Bytes(200)), ns(25));  // waits 18, as the second
  EXPECT_EQ(link.serve(ns(15), ns(5), Bytes(50)), ns(45));   // waits 30; of those before only one still does
  EXPECT_EQ(link.serve(ns(60), ns(1), Bytes(10)), ns(60));
  const LinkStatistics& done = link.statistics();
  EXPECT_EQ(done.messages, 5U);
  EXPECT_EQ(done.bytes, Bytes(460));
  EXPECT_EQ(done.busy, ns(46));
  EXPECT_EQ(done.queueing, ns(58));
  EXPECT_EQ(done.peak_queue, 2U);
}

// A message of 10 ns is in service from 5 ns on, and another one waits. A word that comes at 7 ns and takes 1 ns passes
// both: what comes then begins 1 ns later than it would without the word.
TEST(LinkServer, WhatIsServedAtOnceDelaysTheOthers) {
  LinkServer link;
  EXPECT_EQ(link.serve(ns(5), ns(10), Bytes(100)), ns(5));
  EXPECT_EQ(link.serve(ns(6), ns(10), Bytes(100)), ns(15));
  EXPECT_TRUE(link.serve_at_once(ns(7), ns(1), Bytes(8)));
  EXPECT_EQ(link.serve(ns(8), ns(10), Bytes(100)), ns(26));
  EXPECT_TRUE(link.serve_at_once(ns(50), ns(1), Bytes(8)));
  EXPECT_EQ(link.serve(ns(50), ns(10), Bytes(100)), ns(51));
  EXPECT_EQ(link.statistics().messages, 6U);
  EXPECT_EQ(link.statistics().busy, ns(42));
  EXPECT_FALSE(link.serve_at_once(ns(50), Time::max(), Bytes(8)));
}

// 1000 messages come at 0 ns and take 10 ns each. When half of them are served, 1000 more come.
TEST(LinkServer, ALongQueueThatDrains) {
  LinkServer link;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(link.serve(ns(0), ns(10), Bytes(1)), ns(10 * i));
  EXPECT_EQ(link.statistics().peak_queue, 999U);
  EXPECT_EQ(link.serve(ns(5000), ns(10), Bytes(1)), ns(10000));  // 499 others wait
  EXPECT_EQ(link.statistics().peak_queue, 999U);
  for (int i = 1; i < 1000; ++i) link.serve(ns(5000), ns(10), Bytes(1));
  EXPECT_EQ(link.statistics().peak_queue, 499U + 1000U);
}

// Two messages take half of the range of time each. The second one does not fit and is not counted.
TEST(LinkServer, LeavesTheRangeOfTime) {
  LinkServer link;
  const Time half = Time::from_ps(Time::max().ps() / 2 + 1);
  EXPECT_EQ(link.serve(Time::zero(), half, Bytes(1)), Time::zero());
  EXPECT_EQ(link.serve(Time::zero(), half, Bytes(1)), Time::max());
  EXPECT_EQ(link.statistics().messages, 1U);
}

}  // namespace
}  // namespace orrery::network
