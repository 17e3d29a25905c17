// The compute models of the registry: what the roofline computes, by hand, and what each model takes from a node.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "orrery/base/error.hpp"
#include "orrery/compute/options.hpp"

namespace orrery::compute {
namespace {

constexpr Time ns(std::int64_t count) { return Time::from_ns(count); }
constexpr Time ps(std::int64_t count) { return Time::from_ps(count); }

/// 1 TFLOPS over 100 GB/s: 10 FLOPs per byte where the two meet.
Options processor() {
  Options options;
  options.model = ModelName("roofline");
  options.peak_flops = 1e12;
  options.local_memory = Bandwidth::from_bytes_per_ns(100);
  return options;
}

Time duration(std::uint64_t num_ops, std::uint64_t bytes, const Options& options) {
  return make_model(options)->duration({num_ops, Bytes(bytes), ns(77)});
}
Time physical(std::uint64_t num_ops, std::uint64_t bytes) { return duration(num_ops, bytes, processor()); }
Time astra_sim(std::uint64_t num_ops, std::uint64_t bytes) {
  Options options = processor();
  options.rounding = Rounding::down_to_ns;
  options.ignore_nodes_without_bytes = true;
  return duration(num_ops, bytes, options);
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

// Every model has one line of help. One that declares to use recorded durations gives different durations to nodes that
// differ in them, and no other model does. The same holds for operations. No model uses both.
TEST(ComputeModels, UseWhatTheyDeclare) {
  for (const ModelName model : ModelName::all()) {
    Options options = processor();
    options.model = model;
    options.validate();
    EXPECT_FALSE(model->help.empty());
    const auto made = make_model(options);
    const bool uses_recorded = made->duration({1000, Bytes(1000), ns(5)}) != made->duration({1000, Bytes(1000), ns(6)});
    const bool uses_operations =
        made->duration({1'000'000'000, Bytes(0), ns(5)}) != made->duration({1, Bytes(0), ns(5)});
    EXPECT_FALSE(uses_recorded && uses_operations) << model.name();
    EXPECT_EQ(uses_recorded, model->uses_recorded) << model.name();
    EXPECT_EQ(uses_operations, model->uses_operations) << model.name();
  }
}

// By default a node takes what the trace recorded, whatever it computes.
TEST(ComputeModels, RecordedDurationsAreTheDefault) {
  Options options;
  EXPECT_EQ(options.model.name(), "recorded");
  EXPECT_EQ(duration(1'000'000, 1'000'000, options), ns(77));
}

// A node takes num_ops / min(peak, bandwidth * num_ops / bytes). Here it has so many operations that the peak decides.
TEST(Roofline, ManyOperationsPerByteTakePeak) {
  EXPECT_EQ(physical(1'000'000'000, 1'000'000), ns(1'000'000));  // 1e9 / 1e12 s
  EXPECT_EQ(astra_sim(1'000'000'000, 1'000'000), ns(1'000'000));
}

// Nodes reach half of the peak at most. One that the bandwidth bounds takes no longer for that.
TEST(Roofline, EfficiencyLowersThePeakOnly) {
  auto half = processor();
  half.efficiency = 0.5;
  EXPECT_EQ(duration(1'000'000'000, 1'000'000, half), ns(2'000'000));
  EXPECT_EQ(duration(1'000'000, 1'000'000, half), ns(10'000));
}

// 1e6 bytes at 100 GB/s take 10 us, with any number of operations up to 10 for each byte.
TEST(Roofline, FewOperationsPerByteTakeTheBandwidth) {
  EXPECT_EQ(physical(1'000'000, 1'000'000), ns(10'000));  // 1e6 B / 100 B/ns, whatever the operations
  EXPECT_EQ(physical(9'999'999, 1'000'000), ns(10'000));
  EXPECT_EQ(astra_sim(1'000'000, 1'000'000), ns(10'000));
}

// With 10 operations for each byte the peak and the bandwidth allow the same.
TEST(Roofline, TheTwoMeetAtTenOperationsPerByte) {
  EXPECT_EQ(physical(10'000'000, 1'000'000), ns(10'000));
  EXPECT_EQ(physical(20'000'000, 1'000'000), ns(20'000));
}

// 150 bytes take 1.5 ns: physical rules keep picoseconds, astra-sim rules cut to whole nanoseconds.
TEST(Roofline, RoundsAsTheRulesSay) {
  EXPECT_EQ(physical(1, 150), ps(1500));
  EXPECT_EQ(astra_sim(1, 150), ns(1));
  EXPECT_EQ(astra_sim(1, 50), ns(0));
}

// A node without operations takes the time of its bytes.
TEST(Roofline, WithoutOperationsBytesMove) { EXPECT_EQ(physical(0, 1000), ns(10)); }

// A node without bytes takes its operations over the peak. Under astra-sim rules it takes no time.
TEST(Roofline, WithoutBytesOperationsTakePeakUnlessAstraSim) {
  EXPECT_EQ(physical(1'000'000, 0), ns(1000));
  EXPECT_EQ(astra_sim(1'000'000, 0), Time::zero());
  EXPECT_EQ(physical(0, 0), Time::zero());
}

// The memory has a latency of 100 ns, which is added to the 10 ns of 1000 bytes.
TEST(Roofline, TheLatencyOfTheMemoryComesOnTop) {
  auto options = processor();
  options.local_memory_latency_ns = 100;
  EXPECT_EQ(duration(1, 1000, options), ns(110));
}

/// A cache of 50 kB at 1 TB/s. Of what it does not hold a quarter moves at 25 GB/s, the rest at 100 GB/s.
Options processor_of_three_levels() {
  auto options = processor();
  options.local_memory_latency_ns = 100;
  options.cache = {Bytes(50'000), Bandwidth::from_bytes_per_ns(1000), 5};
  options.expanded = {0.25, Bandwidth::from_bytes_per_ns(25), 700};
  return options;
}

// A node of 50 kB fits the cache and moves at its bandwidth, up to one operation for each byte.
TEST(Roofline, WhatTheCacheHoldsMovesAtItsBandwidth) {
  const auto options = processor_of_three_levels();
  EXPECT_EQ(duration(0, 50'000, options), ns(50 + 5));
  EXPECT_EQ(duration(1, 50'000, options), ns(50 + 5));
  EXPECT_EQ(duration(50'000, 50'000, options), ns(50 + 5));  // one FLOP for each byte is the cache's edge
  EXPECT_EQ(duration(100'000, 50'000, options), ns(100 + 5));
}

// A node of 100 kB does not fit the cache. Its bytes pass the local and the expanded memory at the same time, and the
// slower one decides.
TEST(Roofline, TheLevelsBeyondTheCacheWorkSideBySide) {
  auto options = processor_of_three_levels();
  EXPECT_EQ(duration(0, 100'000, options), ns(1000 + 700));  // 25 kB at 25 B/ns; 75 kB at 100 B/ns take 750 ns
  options.expanded.share = 0.125;
  EXPECT_EQ(duration(0, 100'000, options), ns(875 + 700));  // the local memory is the slower one
  EXPECT_EQ(duration(2'000'000, 100'000, options), ns(2000 + 700));
  options.expanded.share = 0;
  EXPECT_EQ(duration(0, 100'000, options), ns(1000 + 100));
}

// A cache that is not faster than the memory behind it, and a share of bytes without a bandwidth, are refused.
TEST(Roofline, ACacheIsFasterThanTheMemoryAndAShareHasABandwidth) {
  auto options = processor_of_three_levels();
  EXPECT_EQ(message_of([&] { options.validate(); }), "");
  options.cache.bandwidth = options.local_memory;
  EXPECT_NE(message_of([&] { options.validate(); }).find("compute.cache.bandwidth"), std::string::npos);
  options.cache = {};
  options.expanded.bandwidth = {};
  EXPECT_NE(message_of([&] { options.validate(); }).find("expanded-memory.bandwidth"), std::string::npos);
}

// The roofline refuses to work without a peak or a bandwidth; recorded durations need neither.
TEST(Roofline, NeedsPeakAndBandwidth) {
  auto no_peak = processor();
  no_peak.peak_flops = 0;
  EXPECT_NE(message_of([&] { no_peak.validate(); }), "");
  auto no_memory = processor();
  no_memory.local_memory = Bandwidth();
  EXPECT_NE(message_of([&] { no_memory.validate(); }), "");
  no_memory.model = ModelName("recorded");
  EXPECT_EQ(message_of([&] { no_memory.validate(); }), "");
  EXPECT_EQ(message_of([&] { processor().validate(); }), "");
}

}  // namespace
}  // namespace orrery::compute
