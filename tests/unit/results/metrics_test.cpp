// Figures of a step, by hand.
#include "orrery/results/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "nanoseconds.hpp"
#include "orrery/collective/collective.hpp"

namespace orrery::results {
namespace {

using collective::Kind;
using communicator::CollectiveSum;
using npu::NpuRecord;

/// 100 ns in all: 40 of compute, 5 of CPU, 30 of communication (10 of them in receives alone), 5 of memory, 20 idle;
/// and one that is done after 80, with 10 fewer of communication and of idle time.
std::vector<NpuRecord> two_npus() {
  NpuRecord longer;
  longer.compute = ns(40);
  longer.cpu = ns(5);
  longer.communication = ns(50);
  longer.waits[0] = ns(30);
  longer.exposed_receive = ns(10);
  longer.exposed_memory = ns(5);
  longer.idle = ns(20);
  longer.finish = ns(100);
  NpuRecord shorter = longer;
  shorter.npu = NpuId(1);
  shorter.waits[0] = ns(20);
  shorter.idle = ns(10);
  shorter.finish = ns(80);
  return {longer, shorter};
}

CollectiveSum sum_of(Kind kind, std::uint32_t members, std::uint64_t count, std::uint64_t bytes, std::int64_t time_ns) {
  return {static_cast<std::uint8_t>(kind), members, count, bytes, static_cast<SumOfTimes>(ns(time_ns).ps())};
}

// Two NPUs take two iterations and 100 ns in all. Shares are of the time of both NPUs, other figures are those of a
// step, and the figures of a generated workload are unknown.
TEST(Metrics, SharesOfAllTimeAddUp) {
  const auto metrics = metrics_of(two_npus(), {{600, 80}, {0.5, 0}}, 2, {}, {});
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->step_time, ns(50));
  EXPECT_DOUBLE_EQ(metrics->shares.compute, 0.4);
  EXPECT_DOUBLE_EQ(metrics->shares.cpu, 0.05);
  EXPECT_DOUBLE_EQ(metrics->shares.exposed_communication, 0.25);
  EXPECT_DOUBLE_EQ(metrics->shares.exposed_memory, 0.05);
  EXPECT_DOUBLE_EQ(metrics->shares.idle, 0.25);                           // 20, 10, and 20 after the end
  EXPECT_EQ(metrics->exposed_communication_time, Time::from_ps(12'500));  // 50 ns of 2 NPUs and 2 iterations
  EXPECT_EQ(metrics->bytes_per_step, (std::vector<std::int64_t>{300, 40}));
  EXPECT_FALSE(metrics->training.tokens_per_second || metrics->training.samples_per_second ||
               metrics->training.model_flops_utilisation || metrics->training.hardware_flops_utilisation ||
               metrics->bubble);
}

// Three NPUs take no time. There are no metrics.
TEST(Metrics, NothingWithoutTime) { EXPECT_FALSE(metrics_of(std::vector<NpuRecord>(3), {}, 1, {}, {})); }

// Two NPUs of 100 TFLOPS take 100 ns for 8 samples of 16 tokens, 4e6 FLOPs of the model and 5e6 executed ones. The
// utilisations are these over 100 ns * 2 NPUs * 100 TFLOPS = 2e7.
TEST(Metrics, TrainingStep) {
  const TrainingStep step{.samples = 8,
                          .tokens = 128,
                          .model_flops = 4e6,
                          .executed_flops = 5e6,
                          .peak_flops = 1e14,
                          .stages = 4,
                          .ideal_bubble = 0.2,
                          .micro_batches = 6};
  const auto metrics = metrics_of(two_npus(), {}, 1, step, {});
  ASSERT_TRUE(metrics);
  EXPECT_DOUBLE_EQ(metrics->training.samples_per_second.value(), 8e7);
  EXPECT_DOUBLE_EQ(metrics->training.tokens_per_second.value(), 128e7);
  EXPECT_DOUBLE_EQ(metrics->training.tokens_per_second_per_npu.value(), 64e7);
  EXPECT_DOUBLE_EQ(metrics->training.model_flops_utilisation.value(), 0.2);
  EXPECT_DOUBLE_EQ(metrics->training.hardware_flops_utilisation.value(), 0.25);
  ASSERT_TRUE(metrics->bubble);
  EXPECT_DOUBLE_EQ(metrics->bubble->measured, (10 + 10 + 50) / 200.0);  // receives alone, and idle time
  EXPECT_DOUBLE_EQ(metrics->bubble->ideal, 0.2);
}

// A request makes 9 tokens of each of 2 sequences, of which the steps of tokens 1, 2, 5 and 9 were simulated: 20 ns,
// then 4, 7 and 15 ns. On lines tokens 3 and 4 take 5 and 6 ns, and tokens 6 to 8 take 9, 11 and 13 ns.
TEST(Metrics, RequestsTakeTheTimeOfAllTokens) {
  const TrainingStep step{.samples = 2,
                          .tokens = 18,
                          .stages = 2,
                          .phase = TrainingStep::Phase::request,
                          .generation = Generation{9, {1, 2, 5, 9}, {ns(20), ns(24), ns(31), ns(46)}}};
  const auto metrics = metrics_of(two_npus(), {}, 1, step, {});
  ASSERT_TRUE(metrics);
  const auto& found = metrics->training;
  const double decoding = 4 + 5 + 6 + 7 + 9 + 11 + 13 + 15;
  EXPECT_DOUBLE_EQ(found.time_to_first_token.value(), 20e-9);
  EXPECT_NEAR(found.time_per_output_token.value(), decoding / 8 * 1e-9, 1e-18);
  EXPECT_NEAR(found.first_output_token.value(), 4e-9, 1e-18);
  EXPECT_NEAR(found.last_output_token.value(), 15e-9, 1e-18);
  EXPECT_NEAR(found.request_time.value(), (20 + decoding) * 1e-9, 1e-18);
  EXPECT_NEAR(found.tokens_per_second.value(), 18 / ((20 + decoding) * 1e-9), 1);
  EXPECT_FALSE(metrics->bubble);
}

// A step has no tokens, no peak and no pipeline. Only the samples per second are known.
TEST(Metrics, WhatIsNotKnownIsLeftOut) {
  const TrainingStep step{.samples = 8, .model_flops = 4e6, .executed_flops = 5e6};
  const auto metrics = metrics_of(two_npus(), {}, 1, step, {});
  ASSERT_TRUE(metrics);
  EXPECT_TRUE(metrics->training.samples_per_second);
  EXPECT_FALSE(metrics->training.tokens_per_second || metrics->training.model_flops_utilisation ||
               metrics->training.hardware_flops_utilisation || metrics->bubble);
}

// Korthikanti et al. (arXiv 2205.05198), table 5: 175B, 64 samples of 2048 tokens on 64 GPUs of 312 TFLOPS in 13.75 s.
TEST(Metrics, PublishedUtilisation) {
  const double B = 64, s = 2048, l = 96, h = 12288, V = 51200;
  const TrainingStep step{.samples = B,
                          .tokens = B * s,
                          .model_flops = 72 * B * s * l * h * h * (1 + s / (6 * h) + V / (12 * l * h)),
                          .peak_flops = 312e12};
  std::vector<NpuRecord> npus(64);
  for (NpuRecord& npu : npus) npu.finish = npu.compute = Time::from_ns(13'750'000'000);
  const auto metrics = metrics_of(npus, {}, 1, step, {});
  ASSERT_TRUE(metrics);
  EXPECT_NEAR(metrics->training.model_flops_utilisation.value(), 0.514, 0.0005);
}

// Sums of two ranks. All-reduces of 4 members: 1000 + 3000 bytes in 10 + 10 ns are 200 GB/s, and 2 * 3 / 4 times that
// on the bus. All-gathers of 5 shards of 1000 bytes in 10 ns are 500 GB/s, and 4 / 5 of it on the bus. Kinds that took
// no time, and barriers, have no row.
TEST(Metrics, BusBandwidthOfAllCollectivesOfAKind) {
  const auto rows =
      totals_of(std::vector{sum_of(Kind::all_gather, 5, 1, 1000, 10), sum_of(Kind::all_reduce, 4, 2, 1000, 10),
                            sum_of(Kind::all_reduce, 1, 7, 1000, 0), sum_of(Kind::barrier, 4, 1, 1000, 10),
                            sum_of(Kind::all_reduce, 4, 3, 3000, 10)});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].kind, static_cast<std::uint8_t>(Kind::all_reduce));
  EXPECT_EQ(rows[0].members, 4U);
  EXPECT_EQ(rows[0].count, 5U);
  EXPECT_TRUE(rows[0].time == 20'000U);
  EXPECT_DOUBLE_EQ(rows[0].bus_bandwidth, 300e9);
  EXPECT_EQ(rows[1].members, 5U);
  EXPECT_DOUBLE_EQ(rows[1].bus_bandwidth, 400e9);
}

// The factors of nccl-tests: doc/PERFORMANCE.md, and src/gather.cu and src/scatter.cu, in which the size is that of the
// root's buffer.
TEST(Metrics, BusBandwidthOfEachKind) {
  // 5 members, 1000 bytes in 10 ns: 100 GB/s, times what the kind makes of it.
  const std::pair<Kind, double> factors[] = {
      {Kind::all_reduce, 8.0 / 5}, {Kind::all_gather, 4},   {Kind::reduce_scatter, 4.0 / 5},
      {Kind::all_to_all, 4.0 / 5}, {Kind::broadcast, 1},    {Kind::reduce, 1},
      {Kind::gather, 4},           {Kind::scatter, 4.0 / 5}};
  for (const auto& [kind, factor] : factors)
    EXPECT_DOUBLE_EQ(totals_of(std::vector{sum_of(kind, 5, 1, 1000, 10)}).at(0).bus_bandwidth, factor * 100e9)
        << name(kind);
}

// 10^13 collectives of 10^6 ps: the sum of times is larger than an int64, and the bandwidth is still right.
TEST(Metrics, SumsOfManyCollectives) {
  const CollectiveSum many{static_cast<std::uint8_t>(Kind::broadcast), 8, 10'000'000'000'000, SumOfTimes{1} << 80,
                           SumOfTimes{10'000'000'000'000} * 1'000'000};
  EXPECT_DOUBLE_EQ(totals_of(std::vector{many, many}).at(0).bus_bandwidth, std::ldexp(1.0, 80) / 1e7);
}

}  // namespace
}  // namespace orrery::results
