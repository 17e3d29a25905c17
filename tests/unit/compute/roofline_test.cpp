#include "orrery/compute/roofline.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "orrery/base/error.hpp"

namespace orrery::compute {
namespace {

constexpr Time ns(std::int64_t count) { return Time::from_ns(count); }
constexpr Time ps(std::int64_t count) { return Time::from_ps(count); }

/// 1 TFLOPS over 100 GB/s: 10 FLOPs per byte where the two meet.
Options processor() {
  Options options;
  options.roofline = true;
  options.peak_flops = 1e12;
  options.local_memory = Bandwidth::from_bytes_per_ns(100);
  return options;
}

Time physical(std::uint64_t num_ops, std::uint64_t bytes) { return roofline_time(num_ops, Bytes(bytes), processor()); }
Time astra_sim(std::uint64_t num_ops, std::uint64_t bytes) {
  Options options = processor();
  options.rounding = Rounding::down_to_ns;
  options.ignore_nodes_without_bytes = true;
  return roofline_time(num_ops, Bytes(bytes), options);
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
  EXPECT_EQ(roofline_time(1, Bytes(1000), options), ns(110));
}

/// 50 kB at 1 TB/s, and a quarter of what does not fit at 25 GB/s.
Options processor_of_three_levels() {
  auto options = processor();
  options.local_memory_latency_ns = 100;
  options.cache = {Bytes(50'000), Bandwidth::from_bytes_per_ns(1000), 5};
  options.expanded = {0.25, Bandwidth::from_bytes_per_ns(25), 700};
  return options;
}

Time in_levels(std::uint64_t num_ops, std::uint64_t bytes, const Options& options) {
  return roofline_time(num_ops, Bytes(bytes), options);
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

}  // namespace
}  // namespace orrery::compute
