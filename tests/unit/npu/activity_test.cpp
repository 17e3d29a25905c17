#include "activity.hpp"

#include <gtest/gtest.h>

#include "matcher.hpp"

namespace orrery::npu {
namespace {

constexpr Time at(std::int64_t ns) { return Time::from_ns(ns); }

NpuRecord record_of(const Activity& activity) {
  NpuRecord record;
  activity.fill(record);
  return record;
}

Time wait(const NpuRecord& record, Cause cause) { return record.waits[static_cast<std::size_t>(cause)]; }

// 0 .. 10 idle, 10 .. 30 communication, of which 20 .. 25 under compute; 30 .. 40 memory, of which 32 .. 36 under the
// CPU.
TEST(Activity, AMomentCountsOnce) {
  Activity activity;
  activity.begin(Work::communication, at(10));
  activity.begin(Work::compute, at(20));
  activity.end(Work::compute, at(25));
  activity.end(Work::communication, at(30));
  activity.begin(Work::memory, at(30));
  activity.begin(Work::cpu, at(32));
  activity.end(Work::cpu, at(36));
  activity.end(Work::memory, at(40));
  const auto record = record_of(activity);
  EXPECT_EQ(record.idle, at(10));
  EXPECT_EQ(record.compute, at(5));
  EXPECT_EQ(record.communication, at(20));
  EXPECT_EQ(record.exposed_communication(), at(15));
  EXPECT_EQ(record.cpu, at(4));
  EXPECT_EQ(record.memory, at(10));
  EXPECT_EQ(record.exposed_memory, at(6));
}

// 0 .. 8 a receive, of which 2 .. 4 under a collective and 5 .. 6 under compute: all of it is communication, 5 of it in
// the receive alone; 6 .. 10 memory, of which 8 .. 10 in it alone.
TEST(Activity, ReceivesAreCommunicationToo) {
  Activity activity;
  activity.begin(Work::receive, at(0));
  activity.begin(Work::communication, at(2));
  activity.end(Work::communication, at(4));
  activity.begin(Work::compute, at(5));
  activity.end(Work::compute, at(6));
  activity.begin(Work::memory, at(6));
  activity.end(Work::receive, at(8));
  activity.end(Work::memory, at(10));
  const auto record = record_of(activity);
  EXPECT_EQ(record.communication, at(8));
  EXPECT_EQ(record.exposed_communication(), at(7));
  EXPECT_EQ(record.exposed_receive, at(5));
  EXPECT_EQ(record.exposed_memory, at(2));
  EXPECT_EQ(record.compute, at(1));
  EXPECT_EQ(record.idle, at(0));
}

// An NPU does all four kinds of work from 0 on, and they end one after the other. Each moment counts for the first kind
// in this order that is under way.
TEST(Activity, ComputeComesBeforeCpuBeforeCommunicationBeforeMemory) {
  Activity activity;
  for (const Work work : {Work::memory, Work::communication, Work::cpu, Work::compute}) activity.begin(work, at(0));
  activity.end(Work::compute, at(1));
  activity.end(Work::cpu, at(3));
  activity.end(Work::communication, at(7));
  activity.end(Work::memory, at(15));
  const auto record = record_of(activity);
  EXPECT_EQ(record.compute, at(1));
  EXPECT_EQ(record.cpu, at(2));
  EXPECT_EQ(record.exposed_communication(), at(4));
  EXPECT_EQ(record.exposed_memory, at(8));
  EXPECT_EQ(record.idle, Time::zero());
}

// Two communication nodes overlap from 4 ns to 6 ns. The time of both together counts once.
TEST(Activity, SeveralOfAKindOverlap) {
  Activity activity;
  activity.begin(Work::communication, at(0));
  activity.begin(Work::communication, at(4));
  activity.end(Work::communication, at(6));
  activity.end(Work::communication, at(9));
  EXPECT_EQ(record_of(activity).communication, at(9));
}

using Messages = Matcher<int, char>;

// One side of a channel leaves two items. The other side takes them in the order in which they were left, and then
// finds nothing.
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

// An item is left on a channel. Another tag, another NPU and the other side do not find it.
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

// 0 .. 10 a collective, of which 4 .. 6 under compute; the last member joins at 3. So 3 is waiting and 5 the
// collective. Then 10 .. 18 a receive whose data leave at 15.
TEST(Activity, ExposedCommunicationHasACause) {
  Activity activity;
  activity.begin(Work::communication, at(0));
  activity.begin(Work::compute, at(4));
  activity.end(Work::compute, at(6));
  activity.end(Work::communication, at(10));
  activity.explain(Cause::tensor, at(3));
  activity.begin(Work::receive, at(10));
  activity.end(Work::receive, at(18));
  activity.explain(Cause::pipeline, at(15));
  const auto record = record_of(activity);
  EXPECT_EQ(wait(record, Cause::stragglers), at(3));
  EXPECT_EQ(wait(record, Cause::tensor), at(5));
  EXPECT_EQ(wait(record, Cause::bubble), at(5));
  EXPECT_EQ(wait(record, Cause::pipeline), at(3));
  EXPECT_EQ(record.exposed_communication(), at(16));
}

// Two collectives are in service from 0 on; one ends at 4, the other one at 10. The first end explains the time before
// it, the second one the rest.
TEST(Activity, TheNextEndExplainsTheTimeSinceTheLastOne) {
  Activity activity;
  activity.begin(Work::communication, at(0));
  activity.begin(Work::communication, at(0));
  activity.end(Work::communication, at(4));
  activity.explain(Cause::tensor, at(0));
  activity.end(Work::communication, at(10));
  activity.explain(Cause::data, at(0));
  const auto record = record_of(activity);
  EXPECT_EQ(wait(record, Cause::tensor), at(4));
  EXPECT_EQ(wait(record, Cause::data), at(6));
}

// A run ends at 7 while a collective is in service: nothing explains it.
TEST(Activity, WhatDoesNotEndIsOfNoKnownCause) {
  Activity activity;
  activity.begin(Work::communication, at(2));
  activity.advance(at(7));
  EXPECT_EQ(wait(record_of(activity), Cause::other), at(5));
}

// Names of the generator's groups, and names that only look like them.
TEST(Cause, TheFirstWordOfAGroupsNameTells) {
  EXPECT_EQ(cause_of_group("tp_dp3_pp1"), Cause::tensor);
  EXPECT_EQ(cause_of_group("edp"), Cause::data);
  EXPECT_EQ(cause_of_group("embedding_tp1"), Cause::data);
  EXPECT_EQ(cause_of_group("tpu"), Cause::other);
  EXPECT_EQ(cause_of_group(""), Cause::other);
}

}  // namespace
}  // namespace orrery::npu
