#include "activity.hpp"

#include <gtest/gtest.h>

#include "matcher.hpp"

namespace orrery::executor {
namespace {

constexpr Time ns(std::int64_t count) { return Time::from_ns(count); }

NpuRecord record_of(const Activity& activity) {
  NpuRecord record;
  activity.fill(record);
  return record;
}

// 0 .. 10 idle, 10 .. 30 communication, of which 20 .. 25 under compute; 30 .. 40 memory, of which 32 .. 36 under the
// CPU.
TEST(Activity, AMomentCountsOnce) {
  Activity activity;
  activity.begin(Work::communication, ns(10));
  activity.begin(Work::compute, ns(20));
  activity.end(Work::compute, ns(25));
  activity.end(Work::communication, ns(30));
  activity.begin(Work::memory, ns(30));
  activity.begin(Work::cpu, ns(32));
  activity.end(Work::cpu, ns(36));
  activity.end(Work::memory, ns(40));
  const auto record = record_of(activity);
  EXPECT_EQ(record.idle, ns(10));
  EXPECT_EQ(record.compute, ns(5));
  EXPECT_EQ(record.communication, ns(20));
  EXPECT_EQ(record.exposed_communication, ns(15));
  EXPECT_EQ(record.cpu, ns(4));
  EXPECT_EQ(record.memory, ns(10));
  EXPECT_EQ(record.exposed_memory, ns(6));
}

// 0 .. 8 a receive, of which 2 .. 4 under a collective and 5 .. 6 under compute: all of it is communication, 5 of it in
// the receive alone; 6 .. 10 memory, of which 8 .. 10 in it alone.
TEST(Activity, ReceivesAreCommunicationToo) {
  Activity activity;
  activity.begin(Work::receive, ns(0));
  activity.begin(Work::communication, ns(2));
  activity.end(Work::communication, ns(4));
  activity.begin(Work::compute, ns(5));
  activity.end(Work::compute, ns(6));
  activity.begin(Work::memory, ns(6));
  activity.end(Work::receive, ns(8));
  activity.end(Work::memory, ns(10));
  const auto record = record_of(activity);
  EXPECT_EQ(record.communication, ns(8));
  EXPECT_EQ(record.exposed_communication, ns(7));
  EXPECT_EQ(record.exposed_receive, ns(5));
  EXPECT_EQ(record.exposed_memory, ns(2));
  EXPECT_EQ(record.compute, ns(1));
  EXPECT_EQ(record.idle, ns(0));
}

TEST(Activity, ComputeComesBeforeCpuBeforeCommunicationBeforeMemory) {
  Activity activity;
  for (const Work work : {Work::memory, Work::communication, Work::cpu, Work::compute}) activity.begin(work, ns(0));
  activity.end(Work::compute, ns(1));
  activity.end(Work::cpu, ns(3));
  activity.end(Work::communication, ns(7));
  activity.end(Work::memory, ns(15));
  const auto record = record_of(activity);
  EXPECT_EQ(record.compute, ns(1));
  EXPECT_EQ(record.cpu, ns(2));
  EXPECT_EQ(record.exposed_communication, ns(4));
  EXPECT_EQ(record.exposed_memory, ns(8));
  EXPECT_EQ(record.idle, Time::zero());
}

TEST(Activity, SeveralOfAKindOverlap) {
  Activity activity;
  activity.begin(Work::communication, ns(0));
  activity.begin(Work::communication, ns(4));
  activity.end(Work::communication, ns(6));
  activity.end(Work::communication, ns(9));
  EXPECT_EQ(record_of(activity).communication, ns(9));
}

using Messages = Matcher<int, char>;

TEST(Matcher, WhoComesSecondFindsTheFirstInOrder) {
  Messages matcher;
  matcher.leave({NpuId(1), 5}, 10);
  matcher.leave({NpuId(1), 5}, 11);
  int item = 0;
  EXPECT_TRUE(matcher.take({NpuId(1), 5}, item));
  EXPECT_EQ(item, 10);
  EXPECT_TRUE(matcher.take({NpuId(1), 5}, item));
  EXPECT_EQ(item, 11);
  EXPECT_FALSE(matcher.take({NpuId(1), 5}, item));
}

TEST(Matcher, KeysDoNotMix) {
  Messages matcher;
  matcher.leave({NpuId(1), 5}, 'a');
  char item = 0;
  EXPECT_FALSE(matcher.take({NpuId(1), 6}, item));
  EXPECT_FALSE(matcher.take({NpuId(2), 5}, item));
  int other_side = 0;
  EXPECT_FALSE(matcher.take({NpuId(1), 5}, other_side));
  EXPECT_TRUE(matcher.take({NpuId(1), 5}, item));
  EXPECT_EQ(item, 'a');
}

}  // namespace
}  // namespace orrery::executor
