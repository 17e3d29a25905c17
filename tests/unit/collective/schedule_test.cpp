#include "schedule.hpp"

#include <gtest/gtest.h>

namespace orrery::collective {
namespace {

/// Chunks of one route over axes 0 and 1, each with its own sizes.
struct OneChunk {
  std::uint64_t size = 0;
  std::vector<std::pair<std::uint32_t, Ps>> phases;  ///< axis, duration
};

ChunkWork work_of(const std::vector<OneChunk>& chunks) {
  ChunkWork work;
  work.num_chunks = chunks.size();
  for (const OneChunk& chunk : chunks) {
    work.route_of.push_back(static_cast<std::uint32_t>(work.routes.size()));
    work.routes.push_back(
        {static_cast<std::uint32_t>(work.stages.size()), static_cast<std::uint32_t>(chunk.phases.size())});
    for (std::size_t p = 0; p < chunk.phases.size(); ++p) {
      ChunkStage stage;
      stage.axis = chunk.phases[p].first;
      stage.phases_left = static_cast<std::uint32_t>(chunk.phases.size() - p);
      stage.size = Bytes(chunk.size);
      stage.duration[0] = stage.duration[1] = chunk.phases[p].second;
      work.stages.push_back(stage);
    }
  }
  return work;
}

std::vector<std::uint32_t> served_in(const ChunkWork& work, std::uint32_t axis, ChunkOrder order) {
  std::vector<std::uint32_t> chunks;
  for (const ScheduledService& service : make_schedule(work, {1, order}).services)
    if (work.stages[service.stage].axis == axis) chunks.push_back(service.chunk);
  return chunks;
}

// Chunk 0 holds axis 0 while the others wait there, of which chunk 3 goes nowhere else and chunk 2 is the smallest.
TEST(Schedule, WhoIsServedFirst) {
  const ChunkWork work =
      work_of({{300, {{0, 50}}}, {200, {{0, 10}, {1, 10}}}, {100, {{0, 10}, {1, 10}}}, {200, {{0, 10}}}});
  using List = std::vector<std::uint32_t>;
  EXPECT_EQ(served_in(work, 0, ChunkOrder::fifo), (List{0, 1, 2, 3}));
  EXPECT_EQ(served_in(work, 0, ChunkOrder::smallest_first), (List{0, 2, 1, 3}));
  EXPECT_EQ(served_in(work, 0, ChunkOrder::fewest_phases_first), (List{0, 3, 1, 2}));
}

// Two chunks of 100, of which 30 are on the way: the second begins at 70. Its next phase waits for all of the first.
TEST(Schedule, WhatIsOnTheWayHoldsNobodyUp) {
  ChunkWork work = work_of({{1, {{0, 100}}}, {1, {{0, 100}}}});
  EXPECT_EQ(make_schedule(work, {1, ChunkOrder::fifo}).end, 200);
  for (ChunkStage& stage : work.stages) stage.latency[0] = stage.latency[1] = 30;
  const Schedule schedule = make_schedule(work, {1, ChunkOrder::fifo});
  EXPECT_EQ(schedule.end, 170);
  EXPECT_NE(schedule.services[1].predecessor, schedule.services[0].result);
  EXPECT_EQ(schedule.services[1].predecessor, schedule.services[0].left);
  work = work_of({{1, {{0, 100}, {1, 100}}}, {1, {{0, 100}, {1, 100}}}});
  for (ChunkStage& stage : work.stages) stage.latency[0] = stage.latency[1] = 30;
  EXPECT_EQ(make_schedule(work, {1, ChunkOrder::fifo}).end, 270);
}

}  // namespace
}  // namespace orrery::collective
