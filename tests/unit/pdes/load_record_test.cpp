#include "orrery/pdes/load_record.hpp"

#include <gtest/gtest.h>

#include "orrery/pdes/load_recorder.hpp"

namespace orrery::pdes {
namespace {

LoadPlaces two_blocks() { return {.num_blocks = 2, .block_of = {0, 0, 1}, .is_spread = {1, 0}}; }

// Events are counted by the block of their logical process, in bins that stay 1 ps wide while all times fit.
TEST(LoadRecorder, CountsEventsByBlockAndBin) {
  LoadRecorder recorder(two_blocks());
  recorder.count(LpId(0), Time::from_ps(3));
  recorder.count(LpId(1), Time::from_ps(3));
  recorder.count(LpId(2), Time::from_ps(4));
  const LoadRecord record = recorder.record();
  EXPECT_EQ(record.bin_width(), 1U);
  ASSERT_EQ(record.events.size(), 2U);
  EXPECT_EQ(record.events[0].events, 2U);
  EXPECT_EQ(record.events[1].block, 1U);
  EXPECT_EQ(record.events[1].bin, 4U);
}

// A late event makes bins so wide that all events stay: their number does not change.
TEST(LoadRecorder, WidensBinsForLateEvents) {
  LoadRecorder recorder(two_blocks());
  for (int i = 0; i < 1000; ++i) recorder.count(LpId(2), Time::from_ps(i));
  const std::int64_t late = std::int64_t{1} << 50U;
  recorder.count(LpId(0), Time::from_ps(late));
  const LoadRecord record = recorder.record();
  EXPECT_EQ(record.bin_width() * most_bins(2), 2 * static_cast<std::uint64_t>(late));
  ASSERT_EQ(record.events.size(), 2U);
  EXPECT_EQ(record.events[0].bin, most_bins(2) / 2);
  EXPECT_EQ(record.events[1].events, 1000U);
  EXPECT_EQ(record.events[1].bin, 0U);
}

// Only what passes between blocks is a flow, and only a spread communicator has replies.
TEST(LoadRecorder, NotesWhatPassesBetweenBlocks) {
  LoadRecorder recorder(two_blocks());
  recorder.pass(LpId(0), Time::from_ps(1), LpId(1), Time::from_ps(2));
  recorder.pass(LpId(0), Time::from_ps(1), LpId(2), Time::from_ps(8));
  recorder.pass(LpId(1), Time::from_ps(1), LpId(2), Time::from_ps(8));
  recorder.reply(0, Time::from_ps(5), Time::from_ps(9));
  recorder.reply(1, Time::from_ps(5), Time::from_ps(9));
  const LoadRecord record = recorder.record();
  ASSERT_EQ(record.flows.size(), 1U);
  EXPECT_EQ(record.flows[0].events, 2U);
  EXPECT_EQ(record.flows[0].sent, 1U);
  EXPECT_EQ(record.flows[0].arrives, 8U);
  EXPECT_EQ(record.least_delay, Time::from_ps(7));
  ASSERT_EQ(record.replies.size(), 1U);
  EXPECT_EQ(record.replies[0].last_arrival, 5U);
  EXPECT_EQ(record.replies[0].completion, 9U);
}

// Two records of which one has wider bins become one record with these bins.
TEST(LoadRecord, CoarseningAddsRows) {
  LoadRecord record;
  record.num_blocks = 1;
  record.events = {{0, 5, 1}, {0, 4, 2}, {0, 7, 4}};
  coarsen(record, 1);
  ASSERT_EQ(record.events.size(), 2U);
  EXPECT_EQ(record.events[0].bin, 2U);
  EXPECT_EQ(record.events[0].events, 3U);
  EXPECT_EQ(record.events[1].bin, 3U);
  EXPECT_EQ(record.shift, 1U);
}

}  // namespace
}  // namespace orrery::pdes
