#include "orrery/results/scaling.hpp"

#include <gtest/gtest.h>

namespace orrery::results {
namespace {

/// Four NPUs, each a block, in bins of 1,024 ps.
Load load_of_four() {
  Load load;
  load.record.shift = 10;
  load.record.num_blocks = 4;
  load.runs_ahead = true;
  load.num_npus = 4;
  return load;
}

constexpr RankSpeed speed{.event_time = 1, .message_time = 0, .latency = 10};

// Blocks 0 and 1 have 5 events in the first bin, block 2 has 1, and block 3 has none. Two ranks share them as 10 and 1.
TEST(Scaling, EventsAreThoseOfTheBlocksOfARank) {
  Load load = load_of_four();
  load.record.events = {{0, 0, 5}, {1, 0, 5}, {2, 0, 1}};
  const ScalingRow row = predict_scaling(load, 2, speed);
  EXPECT_EQ(row.most_events, 10U);
  EXPECT_DOUBLE_EQ(row.mean_events, 5.5);
  EXPECT_DOUBLE_EQ(row.time, 10);
  EXPECT_DOUBLE_EQ(row.speedup, 1.1);
  EXPECT_EQ(row.limit, ScalingLimit::imbalance);
  EXPECT_EQ(row.events_sent + row.posts_sent + row.messages + row.waits, 0U);
}

// Block 0 works for 7 s in bin 0 and sends to block 3, where the event is due in bin 2. Block 3 has 4 events in bin 0
// and 6 in bin 2: it begins with these when the message has come, 10 s after 7, and ends at 23.
TEST(Scaling, ARankWaitsForWhatIsDue) {
  Load load = load_of_four();
  load.record.events = {{0, 0, 7}, {3, 0, 4}, {3, 2, 6}};
  load.record.flows = {{.from = 0, .to = 3, .sent = 0, .arrives = 2, .events = 3}};
  ScalingRow row = predict_scaling(load, 2, speed);
  EXPECT_DOUBLE_EQ(row.time, 23);
  EXPECT_DOUBLE_EQ(row.time_without_messages, 13);
  EXPECT_EQ(row.events_sent, 3U);
  EXPECT_EQ(row.messages, 1U);
  EXPECT_EQ(row.waits, 1U);
  EXPECT_EQ(row.limit, ScalingLimit::latency);
  row = predict_scaling(load, 1, speed);
  EXPECT_DOUBLE_EQ(row.time, 17);
  EXPECT_EQ(row.events_sent, 0U);
}

// The sender and the receiver each take 2 s for the message: block 0 ends at 9, block 3 takes the message in bin 1.
TEST(Scaling, MessagesTakeTimeFromBothRanks) {
  Load load = load_of_four();
  load.record.events = {{0, 0, 7}, {3, 2, 6}};
  load.record.flows = {{.from = 0, .to = 3, .sent = 0, .arrives = 2, .events = 3}};
  EXPECT_DOUBLE_EQ(predict_scaling(load, 2, {.event_time = 1, .message_time = 2, .latency = 0}).time, 15);
}

// Blocks 0, 1 and 3 join a collective in bin 1 and complete in bin 3. Block 1 has the host. On four ranks, the host
// knows of the arrival of block 3 at 8 + 10 s, and the others know of the end at 28 s.
TEST(Scaling, MembersWaitForTheHostOfACollective) {
  Load load = load_of_four();
  load.record.events = {{0, 1, 1}, {1, 1, 2}, {3, 1, 8}, {0, 3, 5}, {1, 3, 5}, {2, 3, 5}, {3, 3, 5}};
  load.record.replies = {{.communicator = 9, .last_arrival = 1, .completion = 3, .count = 2}};
  load.communicators = {{.id = 9, .host = 1, .blocks = {0, 1, 3}}};
  const ScalingRow row = predict_scaling(load, 4, speed);
  EXPECT_DOUBLE_EQ(row.time, 33);
  EXPECT_EQ(row.posts_sent, 8U);
  EXPECT_EQ(row.messages, 4U);
  EXPECT_EQ(row.waits, 3U);
  EXPECT_EQ(predict_scaling(load, 2, speed).posts_sent, 4U);
}

// Block 0 waits in bin 1 for block 3, which needs 20 s. Block 1, on the rank of block 0, has 15 s of work in bin 2 that
// does not depend on it. In the order of bins the rank ends at 30 + 1 + 15 s; if block 1 runs ahead, at 30 + 1.
TEST(Scaling, BlocksThatWaitForNothingGoAhead) {
  Load load = load_of_four();
  load.record.events = {{0, 1, 1}, {1, 2, 15}, {3, 0, 20}};
  load.record.flows = {{.from = 3, .to = 0, .sent = 0, .arrives = 1, .events = 1}};
  const ScalingRow row = predict_scaling(load, 2, speed);
  EXPECT_DOUBLE_EQ(row.time, 46);
  EXPECT_DOUBLE_EQ(row.time_ahead, 31);
  EXPECT_DOUBLE_EQ(row.speedup_ahead, 36.0 / 31);
}

// Ranks that handle events in the order of time wait for each other in each bin with events, if events come one bin
// after what causes them at the earliest. Two ranks have an event in each of three bins: 1, then twice 10 and 1.
TEST(Scaling, RanksInTheOrderOfTimeWaitInEachBin) {
  Load load = load_of_four();
  load.runs_ahead = false;
  load.record.least_delay = Time::from_ps(1024);
  load.record.events = {{0, 0, 1}, {0, 1, 1}, {0, 2, 1}, {3, 0, 1}, {3, 1, 1}, {3, 2, 1}};
  EXPECT_DOUBLE_EQ(predict_scaling(load, 2, speed).time, 23);
  EXPECT_DOUBLE_EQ(predict_scaling(load, 1, speed).time, 6);
}

}  // namespace
}  // namespace orrery::results
