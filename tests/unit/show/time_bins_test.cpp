#include "time_bins.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace orrery::show {
namespace {

constexpr std::size_t compute = static_cast<std::size_t>(NpuState::compute);

// 1000 ps are cut into 1000 bins. Two NPUs compute from 10 to 20 ps and one of them until 30 ps, so the mean is 2, then
// 1, then 0.
TEST(TimeBins, GiveTheMeanNumberOfNpus) {
  TimeBins bins(1000);
  bins.add(compute, 10, 20);
  bins.add(compute, 10, 30);
  EXPECT_EQ(bins.mean(9, compute), 0);
  EXPECT_EQ(bins.mean(10, compute), 2);
  EXPECT_EQ(bins.mean(19, compute), 2);
  EXPECT_EQ(bins.mean(20, compute), 1);
  EXPECT_EQ(bins.mean(29, compute), 1);
  EXPECT_EQ(bins.mean(30, compute), 0);
  EXPECT_EQ(bins.mean(10, TimeBins::communication), 0);
}

// 4000 ps are cut into bins of 4 ps. Three nodes communicate in one of the 4 ps of the first bin, so the mean is 3/4.
TEST(TimeBins, CountPartsOfABin) {
  TimeBins bins(4000);
  bins.add(TimeBins::communication, 1, 2, 3);
  EXPECT_EQ(bins.mean(0, TimeBins::communication), 0.75);
  EXPECT_EQ(bins.mean(1, TimeBins::communication), 0);
}

// A run of 1 ps has fewer picoseconds than bins. One bin is 1 ps long, and the mean of all others is 0.
TEST(TimeBins, MayBeShorterThanAPicosecond) {
  TimeBins bins(1);
  bins.add(compute, 0, 1);
  double sum = 0;
  for (std::size_t bin = 0; bin < num_bins; ++bin) sum += bins.mean(bin, compute);
  EXPECT_EQ(sum, 1);
}

// Random intervals lie in runs of random length, up to the longest time. The bins follow each other from 0 to the end,
// and hold all the time that was added.
TEST(TimeBins, HoldAllTime) {
  std::mt19937_64 random(1);
  for (int repetition = 0; repetition < 200; ++repetition) {
    const auto end = static_cast<std::int64_t>(random() >> (1 + random() % 62)) + 1;
    TimeBins bins(end);
    double added = 0;
    for (int i = 0; i < 5; ++i) {
      const auto from = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
      const auto to = from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end - from + 1));
      bins.add(compute, from, to);
      added += static_cast<double>(to - from);
    }
    double held = 0;
    for (std::size_t bin = 0; bin < num_bins; ++bin) {
      ASSERT_LE(bins.edge(bin), bins.edge(bin + 1));
      held += bins.mean(bin, compute) * static_cast<double>(bins.edge(bin + 1) - bins.edge(bin));
    }
    EXPECT_EQ(bins.edge(0), 0);
    EXPECT_EQ(bins.edge(num_bins), end);
    EXPECT_NEAR(held, added, 1e-9 * added + 1e-6) << end;
  }
}

// An NPU does each kind of work. It counts for the state that /npus of the results has for it, and waiting for a
// message is communication.
TEST(NpuState, FollowsWork) {
  EXPECT_EQ(state_of(npu::Work::compute), NpuState::compute);
  EXPECT_EQ(state_of(npu::Work::cpu), NpuState::cpu);
  EXPECT_EQ(state_of(npu::Work::communication), NpuState::exposed_communication);
  EXPECT_EQ(state_of(npu::Work::receive), NpuState::exposed_communication);
  EXPECT_EQ(state_of(npu::Work::memory), NpuState::exposed_memory);
  EXPECT_EQ(state_of(npu::Work::idle), NpuState::idle);
}

}  // namespace
}  // namespace orrery::show
