// The breakdown of time, the critical path and hints, by hand.
#include "orrery/results/breakdown.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "nanoseconds.hpp"
#include "orrery/results/critical_path.hpp"
#include "orrery/results/hints.hpp"

namespace orrery::results {
namespace {

using npu::Cause;
using npu::NpuRecord;
using npu::TimelineRecord;
using trace::NodeKind;

constexpr std::size_t part_of(Cause cause) { return first_cause_part + static_cast<std::size_t>(cause); }

/// 100 ns: 40 of compute, 5 of CPU, 20 of tensor collectives, 10 of waiting for late members, 5 of memory, 20 idle.
NpuRecord record() {
  NpuRecord npu;
  npu.compute = ns(40);
  npu.cpu = ns(5);
  npu.waits[static_cast<std::size_t>(Cause::tensor)] = ns(20);
  npu.waits[static_cast<std::size_t>(Cause::stragglers)] = ns(10);
  npu.exposed_memory = ns(5);
  npu.idle = ns(20);
  npu.finish = ns(100);
  return npu;
}

// One NPU ends at 100 ns of 125. Its parts add up to 125, as the time after its end counts as idle.
TEST(Breakdown, PartsAddUpToTheEndOfTheSimulation) {
  const Breakdown parts = breakdown_of(record(), ns(125));
  EXPECT_EQ(parts[part_of(Cause::tensor)], ns(20));
  EXPECT_EQ(parts[part_of(Cause::stragglers)], ns(10));
  EXPECT_EQ(parts[idle_part], ns(45));
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), Time::zero()), ns(125));
}

// Two NPUs, of which one does nothing: the shares are of the time of both, and add up to 1.
TEST(Breakdown, TheMeanIsOfTheTimeOfAllNpus) {
  const auto shares = mean_breakdown(std::vector{record(), NpuRecord{}}, ns(100));
  EXPECT_DOUBLE_EQ(shares[0], 0.2);
  EXPECT_DOUBLE_EQ(shares[part_of(Cause::tensor)], 0.1);
  EXPECT_DOUBLE_EQ(shares[idle_part], 0.6);
  EXPECT_DOUBLE_EQ(std::accumulate(shares.begin(), shares.end(), 0.0), 1);
}

/// A row of a timeline.
TimelineRecord row(std::uint32_t npu, std::uint64_t node, NodeKind kind, std::int64_t start, std::int64_t finish,
                   LastArrival last = {}) {
  return {.npu = NpuId(npu),
          .node = node,
          .start = ns(start),
          .finish = ns(finish),
          .kind = kind,
          .cause = kind == NodeKind::compute ? Cause::other : Cause::data,
          .last = last};
}

// NPU 0 computes for 10 ns and NPU 1 for 30; then both are in a collective of 5. The path is NPU 1's computing and the
// collective, on whichever NPU.
TEST(CriticalPath, LeadsToTheMemberThatCameLast) {
  const std::vector<TimelineRecord> timeline = {
      row(0, 1, NodeKind::compute, 0, 10), row(0, 2, NodeKind::collective, 10, 35, {ns(30), NpuId(1)}),
      row(1, 1, NodeKind::compute, 0, 30), row(1, 2, NodeKind::collective, 30, 35, {ns(30), NpuId(1)})};
  const auto path = critical_path(timeline);
  ASSERT_EQ(path.size(), 2U);
  EXPECT_EQ(path[0].npu, NpuId(1));
  EXPECT_EQ(path[0].part, 0U);
  EXPECT_EQ(path[0].finish, ns(30));
  EXPECT_EQ(path[1].start, ns(30));
  EXPECT_EQ(path[1].finish, ns(35));
  EXPECT_EQ(path[1].part, part_of(Cause::data));
}

// On one NPU two nodes end at 20 ns when the last one begins: the longer one is on the path. Nothing runs from 4 to 8.
TEST(CriticalPath, HasNoGapsAndTakesTheLongerNode) {
  const std::vector<TimelineRecord> timeline = {row(0, 1, NodeKind::compute, 0, 4), row(0, 2, NodeKind::compute, 8, 20),
                                                row(0, 3, NodeKind::compute, 15, 20),
                                                row(0, 4, NodeKind::compute, 20, 30)};
  const auto path = critical_path(timeline);
  ASSERT_EQ(path.size(), 4U);
  EXPECT_EQ(path[1].part, idle_part);
  EXPECT_EQ(path[2].node, 2U);
  EXPECT_EQ(path[0].start, ns(0));
  for (std::size_t i = 1; i < path.size(); ++i) EXPECT_EQ(path[i].start, path[i - 1].finish);
}

// Two NPUs send each other messages that take no time, at one moment. The path ends.
TEST(CriticalPath, EndsWhereMessagesTakeNoTime) {
  const std::vector<TimelineRecord> timeline = {row(0, 1, NodeKind::receive, 0, 10, {ns(10), NpuId(1)}),
                                                row(1, 1, NodeKind::receive, 0, 10, {ns(10), NpuId(0)})};
  EXPECT_TRUE(critical_path(timeline).empty());
}

/// Metrics of four stages in which 60 % of the time is bubble and 15 % tensor collectives.
Metrics bubbling() {
  Metrics metrics;
  metrics.bubble = {0.6, 0.75};
  metrics.breakdown[part_of(Cause::tensor)] = 0.15;
  metrics.breakdown[part_of(Cause::data)] = 0.09;
  metrics.shares.exposed_communication = 0.3;
  return metrics;
}

// One micro-batch for four stages: the first hint is to have more, the second one concerns tensor parallelism. 9 % of
// data parallelism are not worth a hint.
TEST(Hints, NameTheKeyAndTheLargestShareFirst) {
  RunDescription run;
  run.step = TrainingStep{.stages = 4, .micro_batches = 1};
  const auto hints = hints_of(bubbling(), run, {});
  ASSERT_EQ(hints.size(), 2U);
  EXPECT_NE(hints[0].find("60 %"), std::string::npos);
  EXPECT_NE(hints[0].find("1 micro-batch for 4 stages: try workload.parallel.micro-batches: 16"), std::string::npos);
  EXPECT_NE(hints[1].find("workload.parallel.tp"), std::string::npos);
}

// The same with 16 micro-batches, a dimension that is 92 % busy, and one that collectives share.
TEST(Hints, TellOfDimensions) {
  RunDescription run;
  run.step = TrainingStep{.stages = 4, .micro_batches = 16};
  run.network.sharers = {2, 1};
  Metrics metrics = bubbling();
  metrics.utilisation = {0.1, 0.92};
  const auto hints = hints_of(metrics, run, {});
  ASSERT_EQ(hints.size(), 3U);
  EXPECT_NE(hints[0].find("1/2 of the bandwidth of dimension 0"), std::string::npos);
  EXPECT_NE(hints[1].find("Dimension 1 is 92 % busy"), std::string::npos);
}

// Of three NPUs, NPU 1 is the one that waits least for others: it is late by its computation, or by its host although
// it computes least.
TEST(Hints, NameTheNpuThatIsLateAndWhy) {
  constexpr auto stragglers = static_cast<std::size_t>(Cause::stragglers);
  Metrics metrics;
  metrics.breakdown[part_of(Cause::stragglers)] = 0.3;
  std::vector<NpuRecord> npus(3);
  for (std::uint32_t i = 0; i < npus.size(); ++i) {
    npus[i].npu = NpuId(i);
    npus[i].compute = ns(10);
    npus[i].waits[stragglers] = ns(10);
  }
  npus[1].compute = ns(20);
  npus[1].waits[stragglers] = ns(0);
  const auto hints = hints_of(metrics, {}, npus);
  ASSERT_EQ(hints.size(), 1U);
  EXPECT_NE(hints[0].find("NPU 1 is late: it computes for 20 ns, 10 ns in the mean of the others"), std::string::npos)
      << hints[0];
  npus[1].compute = ns(9);
  npus[1].cpu = ns(11);
  npus[2].cpu = ns(2);
  const auto hint = hint_of_late_members(metrics, npus);
  ASSERT_TRUE(hint);
  EXPECT_NE(hint->find("NPU 1 is late: its host (cpu) works for 11 ns, 1 ns in the mean"), std::string::npos) << *hint;
  metrics.breakdown[part_of(Cause::stragglers)] = 0.05;
  EXPECT_FALSE(hint_of_late_members(metrics, npus));
}

}  // namespace
}  // namespace orrery::results
