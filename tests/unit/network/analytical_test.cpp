#include <gtest/gtest.h>

#include <vector>

#include "orrery/network/analytical.hpp"

namespace orrery::network {
namespace {

using topology::Dimension;
using topology::Shape;
using topology::Topology;

/// 2 x 4 x 4 NPUs; 10, 20 and 40 bytes/ns; 100, 200 and 400 ns per hop. Strides are 1, 2 and 8.
DelayModel three_dimensions(const Rules& rules = {}) {
  const auto bandwidth = [](double value) { return Bandwidth::from_bytes_per_ns(value); };
  return DelayModel(Topology({{Shape("FullyConnected"), 2, bandwidth(10), 100},
                              {Shape("Ring"), 4, bandwidth(20), 200},
                              {Shape("Switch"), 4, bandwidth(40), 400}}),
                    rules);
}

constexpr NpuId origin{0};
constexpr NpuId across{1 + 2 * 2 + 8 * 3};  // one FullyConnected hop, two Ring hops, two Switch hops

std::vector<std::uint64_t> counts(std::span<const Bytes> bytes) {
  std::vector<std::uint64_t> all;
  for (const Bytes b : bytes) all.push_back(b.count());
  return all;
}
std::vector<std::int64_t> nanoseconds(std::span<const SumOfTimes> times) {
  std::vector<std::int64_t> all;
  for (const SumOfTimes t : times) all.push_back(static_cast<std::int64_t>(t / 1000));
  return all;
}

using Counts = std::vector<std::uint64_t>;
using Nanoseconds = std::vector<std::int64_t>;

// A network that no message has passed has counted no bytes and no busy time.
TEST(Analytical, NothingIsCountedBeforeAnythingPasses) {
  const auto delays = three_dimensions();
  const Analytical network(delays);
  EXPECT_EQ(counts(network.bytes()), (Counts{0, 0, 0}));
  EXPECT_EQ(nanoseconds(network.busy_time()), (Nanoseconds{0, 0, 0}));
}

// Two messages of 2^62 B pass a dimension. One of them is in range, their sum is not.
TEST(Analytical, SaysWhetherItsCountsAreInRange) {
  const auto delays = three_dimensions();
  constexpr Bytes much(std::uint64_t{1} << 62U);
  Analytical network(delays);
  network.count_message(NpuId(0), NpuId(1), much);
  EXPECT_TRUE(network.in_range());
  network.count_message(NpuId(0), NpuId(1), much);
  EXPECT_FALSE(network.in_range()) << "2^63 bytes";
}

// Under physical rules a message is stored and forwarded through each dimension in which its ends differ, and takes
// hops * latency + size / bandwidth in each.
TEST(Analytical, AMessagePaysEveryDifferingDimension) {
  const auto delays = three_dimensions();
  Analytical network(delays);
  EXPECT_EQ(network.delay(origin, across, Bytes(4000)), Time::from_ns((100 + 400) + (2 * 200 + 200) + (2 * 400 + 100)));
  network.count_message(origin, across, Bytes(4000));
  EXPECT_EQ(counts(network.bytes()), (Counts{4000, 4000, 4000}));
  EXPECT_EQ(nanoseconds(network.busy_time()), (Nanoseconds{400, 200, 100}));
}

// Under `astra-sim` rules a message pays the lowest dimension in which its ends differ, and no other.
TEST(Analytical, AMessagePaysTheFirstDifferingDimensionUnderAstraSim) {
  const auto delays = three_dimensions({Rounding::down_to_ns, false});
  Analytical network(delays);
  EXPECT_EQ(network.delay(origin, across, Bytes(4000)), Time::from_ns(500));
  network.count_message(origin, across, Bytes(4000));
  network.count_message(origin, NpuId(2 * 2 + 8), Bytes(4010));
  EXPECT_EQ(counts(network.bytes()), (Counts{4000, 4010, 0}));
  EXPECT_EQ(nanoseconds(network.busy_time()), (Nanoseconds{400, 200, 0}));  // 200.5 is truncated
}

// NPUs 1 and 9 differ in the last dimension only: 2 hops of 400 ns, and 4000 B at 40 B/ns.
TEST(Analytical, EqualCoordinatesCostNothing) {
  const auto delays = three_dimensions();
  Analytical network(delays);
  EXPECT_EQ(network.delay(NpuId(1), NpuId(9), Bytes(4000)), Time::from_ns(900));
  network.count_message(NpuId(1), NpuId(9), Bytes(4000));
  EXPECT_EQ(counts(network.bytes()), (Counts{0, 0, 4000}));
}

// A collective of 32 members, and one of 2, in which each sends 1000 B in dimension 0 and 500 B in dimension 2.
TEST(Analytical, ACollectiveCountsForEachMember) {
  const auto delays = three_dimensions();
  Analytical network(delays);
  const std::vector<Bytes> per_member{Bytes(1000), Bytes(0), Bytes(500)};
  network.count_collective(per_member, 32);
  EXPECT_EQ(counts(network.bytes()), (Counts{32'000, 0, 16'000}));
  EXPECT_EQ(nanoseconds(network.busy_time()), (Nanoseconds{3200, 0, 400}));
  network.count_collective(per_member, 2);
  EXPECT_EQ(counts(network.bytes()), (Counts{34'000, 0, 17'000}));
}

// Each rank counts its own messages. The sum of all ranks does not depend on how messages are divided among them.
TEST(Analytical, CountsOfRanksAddUp) {
  const auto delays = three_dimensions();
  Analytical all(delays), one(delays), other(delays);
  for (std::uint32_t npu = 1; npu < delays.topology().num_npus(); ++npu) {
    all.count_message(origin, NpuId(npu), Bytes(npu * 7));
    (npu % 3 == 0 ? one : other).count_message(origin, NpuId(npu), Bytes(npu * 7));
  }
  for (std::uint32_t d = 0; d < 3; ++d) {
    EXPECT_EQ(all.bytes()[d], one.bytes()[d] + other.bytes()[d]);
    EXPECT_EQ(all.busy_time()[d], one.busy_time()[d] + other.busy_time()[d]);
  }
}

}  // namespace
}  // namespace orrery::network
