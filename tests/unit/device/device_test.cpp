#include <gtest/gtest.h>

#include <functional>

#include "orrery/base/error.hpp"
#include "orrery/device/compute.hpp"
#include "orrery/device/remote_memory.hpp"

namespace orrery::device {
namespace {

constexpr Time ns(std::int64_t count) { return Time::from_ns(count); }
constexpr Time ps(std::int64_t count) { return Time::from_ps(count); }

/// 1 TFLOPS over 100 GB/s: 10 FLOPs per byte where the two meet.
ComputeOptions processor() {
  ComputeOptions options;
  options.roofline = true;
  options.peak_flops = 1e12;
  options.local_memory = Bandwidth::from_bytes_per_ns(100);
  return options;
}

Time physical(std::uint64_t num_ops, std::uint64_t bytes) {
  return roofline_time(num_ops, Bytes(bytes), processor(), Rules::physical());
}
Time astra_sim(std::uint64_t num_ops, std::uint64_t bytes) {
  return roofline_time(num_ops, Bytes(bytes), processor(), Rules::astra_sim());
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return {};
}

// t = num_ops / min(peak, bandwidth * num_ops / bytes).
TEST(Roofline, ManyOperationsPerByteTakePeak) {
  EXPECT_EQ(physical(1'000'000'000, 1'000'000), ns(1'000'000));  // 1e9 / 1e12 s
  EXPECT_EQ(astra_sim(1'000'000'000, 1'000'000), ns(1'000'000));
}

TEST(Roofline, FewOperationsPerByteTakeTheBandwidth) {
  EXPECT_EQ(physical(1'000'000, 1'000'000), ns(10'000));  // 1e6 B / 100 B/ns, whatever the operations
  EXPECT_EQ(physical(9'999'999, 1'000'000), ns(10'000));
  EXPECT_EQ(astra_sim(1'000'000, 1'000'000), ns(10'000));
}

TEST(Roofline, TheTwoMeetAtTenOperationsPerByte) {
  EXPECT_EQ(physical(10'000'000, 1'000'000), ns(10'000));
  EXPECT_EQ(physical(20'000'000, 1'000'000), ns(20'000));
}

TEST(Roofline, RoundsAsTheRulesSay) {
  EXPECT_EQ(physical(1, 150), ps(1500));
  EXPECT_EQ(astra_sim(1, 150), ns(1));
  EXPECT_EQ(astra_sim(1, 50), ns(0));
}

TEST(Roofline, WithoutOperationsBytesMove) { EXPECT_EQ(physical(0, 1000), ns(10)); }

TEST(Roofline, WithoutBytesOperationsTakePeakUnlessAstraSim) {
  EXPECT_EQ(physical(1'000'000, 0), ns(1000));
  EXPECT_EQ(astra_sim(1'000'000, 0), Time::zero());
  EXPECT_EQ(physical(0, 0), Time::zero());
}

TEST(Roofline, TheLatencyOfTheMemoryComesOnTop) {
  auto options = processor();
  options.local_memory_latency_ns = 100;
  EXPECT_EQ(roofline_time(1, Bytes(1000), options, Rules::physical()), ns(110));
}

/// 50 kB at 1 TB/s, and a quarter of what does not fit at 25 GB/s.
ComputeOptions processor_of_three_levels() {
  auto options = processor();
  options.local_memory_latency_ns = 100;
  options.cache = {Bytes(50'000), Bandwidth::from_bytes_per_ns(1000), 5};
  options.expanded = {0.25, Bandwidth::from_bytes_per_ns(25), 700};
  return options;
}

Time in_levels(std::uint64_t num_ops, std::uint64_t bytes, const ComputeOptions& options) {
  return roofline_time(num_ops, Bytes(bytes), options, Rules::physical());
}

TEST(Roofline, WhatTheCacheHoldsMovesAtItsBandwidth) {
  const auto options = processor_of_three_levels();
  EXPECT_EQ(in_levels(0, 50'000, options), ns(50 + 5));
  EXPECT_EQ(in_levels(1, 50'000, options), ns(50 + 5));
  EXPECT_EQ(in_levels(50'000, 50'000, options), ns(50 + 5));  // one FLOP for each byte is the cache's edge
  EXPECT_EQ(in_levels(100'000, 50'000, options), ns(100 + 5));
}

TEST(Roofline, TheLevelsBeyondTheCacheWorkSideBySide) {
  auto options = processor_of_three_levels();
  EXPECT_EQ(in_levels(0, 100'000, options), ns(1000 + 700));  // 25 kB at 25 B/ns; 75 kB at 100 B/ns take 750 ns
  options.expanded.share = 0.125;
  EXPECT_EQ(in_levels(0, 100'000, options), ns(875 + 700));  // the local memory is the slower one
  EXPECT_EQ(in_levels(2'000'000, 100'000, options), ns(2000 + 700));
  options.expanded.share = 0;
  EXPECT_EQ(in_levels(0, 100'000, options), ns(1000 + 100));
}

TEST(Roofline, ACacheIsFasterThanTheMemoryAndAShareHasABandwidth) {
  auto options = processor_of_three_levels();
  EXPECT_EQ(message_of([&] { options.validate(); }), "");
  options.cache.bandwidth = options.local_memory;
  EXPECT_NE(message_of([&] { options.validate(); }).find("compute.cache.bandwidth"), std::string::npos);
  options.cache = {};
  options.expanded.bandwidth = {};
  EXPECT_NE(message_of([&] { options.validate(); }).find("expanded-memory.bandwidth"), std::string::npos);
}

TEST(Roofline, NeedsPeakAndBandwidth) {
  auto no_peak = processor();
  no_peak.peak_flops = 0;
  EXPECT_NE(message_of([&] { no_peak.validate(); }), "");
  auto no_memory = processor();
  no_memory.local_memory = Bandwidth();
  EXPECT_NE(message_of([&] { no_memory.validate(); }), "");
  no_memory.roofline = false;
  EXPECT_EQ(message_of([&] { no_memory.validate(); }), "");
  EXPECT_EQ(message_of([&] { processor().validate(); }), "");
}

RemoteMemoryOptions remote(RemoteMemoryKind kind, std::uint32_t npus_per_node = 0) {
  return {kind, Bandwidth::from_bytes_per_ns(40), 150.5, npus_per_node};
}

// latency + size / bandwidth; a part of the sum is truncated before it is added under `astra-sim` rules, each of the
// two.
TEST(RemoteMemory, AnAccessTakesLatencyAndTransfer) {
  const RemoteMemory physical(remote(RemoteMemoryKind::per_npu), 4, Rules::physical());
  EXPECT_EQ(physical.access_time(Bytes(4000)), ps(250'500));
  EXPECT_EQ(physical.access_time(Bytes(4001)), ps(250'525));
  const RemoteMemory astra_sim(remote(RemoteMemoryKind::per_npu), 4, Rules::astra_sim());
  EXPECT_EQ(astra_sim.access_time(Bytes(4000)), ns(250));
  EXPECT_EQ(astra_sim.access_time(Bytes(4039)), ns(250));
  EXPECT_EQ(astra_sim.access_time(Bytes(4040)), ns(251));
}

TEST(RemoteMemory, AnAccessToASharedServerTakesATickAtLeast) {
  auto options = remote(RemoteMemoryKind::pool);
  options.latency_ns = 0;
  EXPECT_EQ(RemoteMemory(options, 4, Rules::physical()).service_delay(), ps(1));
  EXPECT_EQ(RemoteMemory(options, 4, Rules::astra_sim()).access_time(Bytes(1)), ns(1));
  options.kind = RemoteMemoryKind::per_npu;
  EXPECT_EQ(RemoteMemory(options, 4, Rules::astra_sim()).access_time(Bytes(1)), Time::zero());
}

TEST(RemoteMemory, ServersOfEachKind) {
  EXPECT_EQ(RemoteMemory(remote(RemoteMemoryKind::none), 8, Rules::physical()).num_servers(), 0U);
  EXPECT_EQ(RemoteMemory(remote(RemoteMemoryKind::per_npu), 8, Rules::physical()).num_servers(), 0U);
  const RemoteMemory pool(remote(RemoteMemoryKind::pool), 8, Rules::physical());
  EXPECT_EQ(pool.num_servers(), 1U);
  EXPECT_EQ(pool.server_of(NpuId(7)), 0U);
  EXPECT_EQ(pool.npus_per_server(), 8U);
  const RemoteMemory nodes(remote(RemoteMemoryKind::per_node, 2), 8, Rules::physical());
  EXPECT_EQ(nodes.num_servers(), 4U);
  EXPECT_EQ(nodes.server_of(NpuId(4)), 2U);
  EXPECT_EQ(nodes.server_of(NpuId(5)), 2U);
  EXPECT_EQ(nodes.first_npu_of(2), NpuId(4));
  EXPECT_EQ(nodes.host_of(2), NpuId(4));
  EXPECT_EQ(nodes.host_of(3), NpuId(7));
}

TEST(RemoteMemory, RefusesWhatDoesNotFit) {
  const auto refused = [](RemoteMemoryOptions options) { return message_of([&] { options.validate(8); }) != ""; };
  EXPECT_TRUE(refused(remote(RemoteMemoryKind::per_node, 0)));
  EXPECT_TRUE(refused(remote(RemoteMemoryKind::per_node, 3)));
  EXPECT_FALSE(refused(remote(RemoteMemoryKind::per_node, 4)));
  auto no_bandwidth = remote(RemoteMemoryKind::pool);
  no_bandwidth.bandwidth = Bandwidth();
  EXPECT_TRUE(refused(no_bandwidth));
  auto negative = remote(RemoteMemoryKind::pool);
  negative.latency_ns = -1;
  EXPECT_TRUE(refused(negative));
  no_bandwidth.kind = RemoteMemoryKind::none;
  EXPECT_FALSE(refused(no_bandwidth));
}

// Requests at 0, 10, 100 ns of 60 ns each: 0 .. 60, 60 .. 120 after waiting for 50, 120 .. 180 after waiting for 20.
// The server is idle again at 180, so a request at 200 is served at once.
TEST(MemoryServer, FirstComeFirstServed) {
  MemoryServer server;
  EXPECT_EQ(server.serve(ns(0), ns(60)), ns(60));
  EXPECT_EQ(server.serve(ns(10), ns(60)), ns(120));
  EXPECT_EQ(server.serve(ns(100), ns(60)), ns(180));
  EXPECT_EQ(server.serve(ns(200), ns(60)), ns(260));
  EXPECT_EQ(server.num_served(), 4U);
}

}  // namespace
}  // namespace orrery::device
