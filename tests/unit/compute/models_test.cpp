// The compute models of the registry: what the roofline computes, by hand, and what each model takes from a node.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>

#include "kernel_table.hpp"
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
// differ in them, and no other model does. The same holds for operations. No model uses both. Models that estimate
// operations are left out: they keep recorded durations where there are some.
TEST(ComputeModels, UseWhatTheyDeclare) {
  for (const ModelName model : ModelName::all()) {
    if (model->estimates_operations) continue;
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

/// An H100 with 989 TFLOPS in bf16 and 3350 GB/s.
Options h100() {
  Options options;
  options.model = ModelName("products");
  options.peak_flops = 989e12;
  options.local_memory = Bandwidth::from_bytes_per_ns(3350);
  options.products.processor = ProcessorName("h100");
  return options;
}

Time product(const Options& options, const ProductShape& shape, bool is_backward = false) {
  return make_model(options)->estimate(
      {.kind = Operation::Kind::product, .name = "p", .shape = shape, .is_backward = is_backward});
}

// 132 units compute tiles of 256 x 128. 2,816 rows and 1,536 columns are 132 tiles, one wave. One more row needs a
// second wave of such tiles; smaller tiles need five waves of a quarter each, at a lower rate. Computed by hand: 2 *
// 256 * 128 * 8192 FLOPs / (989e12 * 0.785 / 132) + 0.8 ns + 6.2 us launch.
TEST(Products, TakeWholeWaves) {
  const Time one_wave = product(h100(), {.m = 11 * 256, .k = 8192, .n = 12 * 128});
  EXPECT_NEAR(static_cast<double>(one_wave.ps()),
              (2.0 * 256 * 128 * 8192 / (989e12 * 0.785 / 132) + 0.8e-9 + 6.2e-6) * 1e12, 2);
  const Time more = product(h100(), {.m = 11 * 256 + 1, .k = 8192, .n = 12 * 128});
  EXPECT_GT((more - ns(6200)).ps(), 13 * (one_wave - ns(6200)).ps() / 10);
}

// Backward, a product is that of the gradient with the weights and that of the inputs with the gradient.
TEST(Products, AreTwoBackward) {
  const ProductShape shape{.m = 4096, .k = 8192, .n = 1024};
  const Time both =
      product(h100(), {.m = 4096, .k = 1024, .n = 8192}) + product(h100(), {.m = 8192, .k = 4096, .n = 1024});
  EXPECT_NEAR(static_cast<double>(product(h100(), shape, true).ps()), static_cast<double>(both.ps()), 2);
}

// A product of few rows moves its weights at the share of the bandwidth that products reach.
TEST(Products, AreBoundedByMemory) {
  const double bytes = 2.0 * (1 * 8192 + 8192 * 8192.0 + 1 * 8192);
  EXPECT_NEAR(static_cast<double>(product(h100(), {.m = 1, .k = 8192, .n = 8192}).ps()),
              (bytes / (3350e9 * 0.5525) + 6.2e-6) * 1e12, 2);
}

// In fp8 the rate doubles, times the share for fp8, and operands are cast first, 3 bytes for each value.
TEST(Products, CastOperandsToFp8) {
  Options options = h100();
  options.bf16_peak_flops = options.peak_flops;
  options.peak_flops *= 2;
  options.products.fp8_share = 0.8;
  const double wave = 2.0 * 256 * 128 * 8192 / (2 * 0.8 * 989e12 * 0.785 / 132) + 0.8e-9;
  const double cast = 3.0 * (11 * 256 * 8192.0 + 12 * 128 * 8192.0) / (3350e9 * 0.8);
  EXPECT_NEAR(static_cast<double>(product(options, {.m = 11 * 256, .k = 8192, .n = 12 * 128}).ps()),
              (wave + 6.2e-6 + cast) * 1e12, 2);
}

// Attention takes its FLOPs at a share of the bf16 peak; they are without masked scores already.
TEST(Products, TakeTheFlopsOfAttention) {
  Options options = h100();
  options.products.attention_share = 0.5;
  const auto of = [&](bool is_causal) {
    return make_model(options)->estimate({.kind = Operation::Kind::attention,
                                          .name = "a",
                                          .is_causal = is_causal,
                                          .flops = 1'000'000'000'000,
                                          .bytes = 1000});
  };
  EXPECT_NEAR(static_cast<double>(of(false).ps()), (1e12 / (989e12 * 0.5) + 4e-6) * 1e12, 2);
  EXPECT_EQ(of(true), of(false));
}

// Weights that are fp8 already are no operand to cast: forward the second one, backward that of the gradients of
// inputs. Nothing is cast in inference, whose products read weights for few rows at a share of the bandwidth of their
// own.
TEST(Products, CastWhatIsNoFp8) {
  Options options = h100();
  options.bf16_peak_flops = options.peak_flops;
  options.peak_flops *= 2;
  const auto seconds = [&](Operation::Casts casts, bool is_backward, bool is_inference = false) {
    return make_model(options)
        ->estimate({.kind = Operation::Kind::product,
                    .name = "p",
                    .shape = {.m = 2816, .k = 8192, .n = 1536},
                    .is_backward = is_backward,
                    .casts = casts,
                    .is_inference = is_inference})
        .seconds();
  };
  const double of_weights = 3.0 * 8192 * 1536 / (3350e9 * 0.8), of_inputs = 3.0 * 2816 * 8192 / (3350e9 * 0.8),
               of_gradients = 3.0 * 2816 * 1536 / (3350e9 * 0.8);
  constexpr auto all = Operation::Casts::all, none = Operation::Casts::none;
  EXPECT_NEAR(seconds(all, false) - seconds(Operation::Casts::inputs, false), of_weights, 3e-12);
  EXPECT_NEAR(seconds(all, true) - seconds(Operation::Casts::inputs, true), of_weights, 3e-12);
  EXPECT_NEAR(seconds(Operation::Casts::inputs, false) - seconds(none, false), of_inputs, 3e-12);
  EXPECT_NEAR(seconds(Operation::Casts::inputs, true) - seconds(none, true), of_inputs + 2 * of_gradients, 3e-12);
  const auto decode = [&](bool is_inference) {
    return make_model(options)
        ->estimate({.kind = Operation::Kind::product,
                    .name = "p",
                    .shape = {.m = 1, .k = 8192, .n = 28672},
                    .casts = none,
                    .is_inference = is_inference})
        .seconds();
  };
  const double bytes = 8192.0 + 8192.0 * 28672 + 28672;
  EXPECT_NEAR(decode(true), bytes / (3350e9 * 0.85) + 6.2e-6, 3e-12);
  EXPECT_NEAR(decode(false), bytes / (3350e9 * 0.5525) + 6.2e-6, 3e-12);
}

// The figures of arXiv 2407.08608 on H100, forward, heads of 128, in TFLOPS: six sequences, all scores and causal.
// Rates of kernels hold them within 12 %. A kernel has no rate of a processor that it does not run on.
TEST(AttentionKernels, HoldMeasuredRates) {
  struct Row {
    const char* kernel;
    bool is_causal;
    std::array<double, 6> teraflops;
  };
  const Row rows[] = {{"flash-attention-2", false, {309, 350, 362, 368, 370, 370}},
                      {"cudnn", false, {497, 574, 617, 609, 600, 595}},
                      {"flash-attention-3", false, {467, 565, 625, 638, 646, 648}},
                      {"flash-attention-2", true, {191, 260, 298, 319, 333, 335}},
                      {"cudnn", true, {315, 410, 484, 518, 529, 539}},
                      {"flash-attention-3", true, {292, 423, 521, 579, 602, 616}}};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.teraflops.size(); ++i) {
      const std::uint64_t sequence = 512ULL << i;
      const auto share = AttentionKernelName(row.kernel)
                             ->share("h100", {.kind = Operation::Kind::attention,
                                              .shape = {.m = sequence, .k = 128, .n = sequence},
                                              .is_causal = row.is_causal});
      ASSERT_TRUE(share);
      EXPECT_NEAR(*share * 989 / row.teraflops[i], 1, 0.12) << row.kernel << " " << row.is_causal << " " << sequence;
    }
  EXPECT_FALSE(AttentionKernelName("flash-attention-3")->share("a100", {}));
}

// Backward and with smaller heads a kernel is slower. `attention` goes before the table, and a factor multiplies it.
TEST(AttentionKernels, StandInPlaceOfOneShare) {
  Options options = h100();
  options.products.attention.kernel = AttentionKernelName("flash-attention-2");
  const auto seconds = [&](std::uint64_t head, bool is_backward) {
    return make_model(options)
        ->estimate({.kind = Operation::Kind::attention,
                    .name = "a",
                    .shape = {.m = 4096, .k = head, .n = 4096},
                    .is_backward = is_backward,
                    .flops = 1'000'000'000'000})
        .seconds();
  };
  const double forward = seconds(128, false);
  EXPECT_GT(seconds(128, true), 1.1 * forward);
  EXPECT_GT(seconds(64, false), 1.1 * forward);
  options.products.attention.factor = 2;
  EXPECT_NEAR(seconds(128, false) - 4e-6, (forward - 4e-6) / 2, 1e-9);
  options.products.attention_share = 0.5;
  EXPECT_NEAR(seconds(128, false), 1e12 / (989e12 * 0.5) + 4e-6, 1e-9);
}

// An H100 has 110 W at rest and 700 W: at 500 W its clock is the root of 390 / 590. Memory keeps its bandwidth.
TEST(Products, SlowDownAtAPowerCap) {
  Options options = h100();
  const ProductShape large{.m = 11 * 256, .k = 8192, .n = 12 * 128}, few_rows{.m = 1, .k = 8192, .n = 8192};
  const Time plain = product(options, large), moved = product(options, few_rows);
  options.products.power_cap = 700;
  EXPECT_EQ(product(options, large), plain);
  options.products.power_cap = 500;
  EXPECT_NEAR((product(options, large) - ns(6200)).seconds() / (plain - ns(6200)).seconds(), std::sqrt(590.0 / 390.0),
              1e-3);
  EXPECT_EQ(product(options, few_rows), moved);
  EXPECT_DOUBLE_EQ(clock_factor(100, 110, 700, 2), 0.05);
}

// Rows of 1,800 values are no multiple of 32: 0.8 of the rate. Rows of 8,191 values are unaligned.
TEST(Products, AreSlowerWithUnalignedRows) {
  const auto rate = [](std::uint64_t k, std::uint64_t n) {
    const ProductShape shape{.m = 8192, .k = k, .n = n};
    return static_cast<double>(k * n) / (product(h100(), shape) - ns(6200)).seconds();
  };
  EXPECT_NEAR(rate(1800, 8192) / rate(1792, 8192), 0.8, 0.01);
  EXPECT_NEAR(rate(8191, 8192) / rate(8192, 8192), 0.2, 0.01);
}

// Nodes of generated workloads carry their estimates; a node without, such as the optimizer's, is one kernel.
TEST(Products, KeepEstimatesOfNodes) {
  const auto model = make_model(h100());
  EXPECT_EQ(model->duration({1000, Bytes(1000), ns(123)}), ns(123));
  EXPECT_EQ(model->duration({0, Bytes(3350 * 800), shortest_recorded}), ns(1000 + 4000));
}

constexpr std::string_view kernels =
    "operator,pass,m,k,n,bytes,microseconds\n"
    "# measured by hand\n"
    "product,,1024,1024,1024,,10\n"
    "product,,4096,1024,1024,,40\n"
    "attention.qkv,,1024,1024,1024,,7\n"
    "attention,backward,1024,128,1024,,5\n"
    "elementwise,,,,,1000,1\n"
    "elementwise,,,,,100000,50\n";

Operation measured(std::string_view name, std::uint64_t m) {
  return {.kind = Operation::Kind::product, .name = name, .shape = {.m = m, .k = 1024, .n = 1024}};
}

// A measured shape takes what was measured, by the operator's own kernels if it has some. Shapes in between take their
// work over the rate of the kernels around, which is the same here.
TEST(KernelTable, InterpolatesRates) {
  const auto table = KernelTable::parse(kernels, "kernels.csv", "bf16");
  EXPECT_NEAR(table.seconds(measured("mlp.first", 1024)), 10e-6, 1e-15);
  EXPECT_NEAR(table.seconds(measured("attention.qkv", 1024)), 7e-6, 1e-15);
  EXPECT_NEAR(table.seconds(measured("mlp.first", 2048)), 20e-6, 1e-12);
  const double between = table.seconds({.name = "norm", .bytes = 10000});  // rates 1e9 and 2e9, at equal distances
  EXPECT_NEAR(between, 10000 / std::sqrt(1e9 * 2e9), 1e-12);
}

// What lies outside of the measured sizes is said with the size; what has no kernel at all is an error that names the
// operator and the words for which kernels may be given.
TEST(KernelTable, SaysWhatItDoesNotKnow) {
  const auto table = KernelTable::parse(kernels, "kernels.csv", "bf16");
  EXPECT_EQ(table.doubt(measured("mlp.first", 2048)), std::nullopt);
  EXPECT_EQ(table.doubt(measured("mlp.first", 8192)),
            "mlp.first: m 8192 lies outside of the 1024 to 4096 that were measured");
  const std::string message =
      message_of([&] { table.seconds({.kind = Operation::Kind::attention, .name = "attention.core"}); });
  EXPECT_NE(message.find("kernels.csv: no kernel for the operator attention.core"), std::string::npos) << message;
}

// A table that cannot be read names the file, the line and the column.
TEST(KernelTable, NamesTheLine) {
  const auto message = [](std::string_view text) {
    return message_of([&] { KernelTable::parse(text, "kernels.csv", "bf16"); });
  };
  EXPECT_NE(message("operator,m,k,n\n").find("kernels.csv:1: the first line names no column 'microseconds'"),
            std::string::npos);
  EXPECT_NE(message("operator,m,k,n,microseconds\nproduct,1,2,3\n").find("kernels.csv:2: found 4 fields"),
            std::string::npos);
  EXPECT_NE(message("operator,m,k,n,microseconds\nproduct,1,x,3,4\n").find("kernels.csv:2: key 'k': found 'x'"),
            std::string::npos);
  EXPECT_NE(message("operator,microseconds\n").find("found no kernel"), std::string::npos);
  EXPECT_NE(message("operator,usec\n").find("kernels.csv:1: found the column 'usec'; expected operator, pass,"),
            std::string::npos);
  EXPECT_NE(message("operator,operator,microseconds\n").find("each once"), std::string::npos);
  EXPECT_NE(message("operator,pass,bytes,microseconds\nnorm,back,1,2\n").find("kernels.csv:2: found the pass 'back'"),
            std::string::npos);
}

// Kernels of the workload's precision count, and those without one. If there are others only, they are named.
TEST(KernelTable, TakesKernelsOfThePrecision) {
  constexpr std::string_view text =
      "operator,precision,m,k,n,microseconds\n"
      "product,bf16,1024,1024,1024,10\n"
      "product,fp8,1024,1024,1024,6\n"
      "attention.qkv,,1024,1024,1024,7\n";
  for (const auto& [precision, seconds] : {std::pair("bf16", 10e-6), std::pair("fp8", 6e-6)}) {
    const auto table = KernelTable::parse(text, "kernels.csv", precision);
    EXPECT_NEAR(table.seconds(measured("mlp.first", 1024)), seconds, 1e-15);
    EXPECT_NEAR(table.seconds(measured("attention.qkv", 1024)), 7e-6, 1e-15);
  }
  const std::string_view of_fp8 = "operator,precision,bytes,microseconds\nelementwise,fp8,1000,2\n";
  const std::string message = message_of([&] { KernelTable::parse(of_fp8, "kernels.csv", "bf16"); });
  EXPECT_NE(message.find("found kernels of fp8 only; expected kernels of bf16"), std::string::npos) << message;
}

// An operator that the workload does not have is told; the classes of operators are for any.
TEST(KernelTable, TellsKernelsThatNobodyUses) {
  const auto table = KernelTable::parse(kernels, "kernels.csv", "bf16");
  const std::vector<Operation> others{measured("mlp.first", 1024)}, own{measured("attention.qkv", 1024)};
  EXPECT_EQ(table.unused(others), std::vector<std::string>{"attention.qkv"});
  EXPECT_TRUE(table.unused(own).empty());
}

/// An array of this many rows and columns, with cycles of 1 ns and memory that is never the limit.
Time on_array(std::uint32_t rows, std::uint32_t columns, Dataflow dataflow, const Operation& operation) {
  Options options;
  options.model = ModelName("systolic");
  options.systolic = {rows, columns, 1, dataflow};
  options.local_memory = Bandwidth::from_bytes_per_ns(1e9);
  options.validate();
  return make_model(options)->estimate(operation);
}

// The first layer of AlexNet as a product: 55 x 55 results of 11 * 11 * 3 values each, for 96 filters. SCALE-Sim 2
// publishes 112,283 cycles for 32 x 32 units with stationary weights (scalesim-project/scale-sim-v2,
// test/golden_trace).
TEST(Systolic, TakesThePublishedCycles) {
  const Operation layer{.kind = Operation::Kind::product, .name = "conv1", .shape = {.m = 55 * 55, .k = 363, .n = 96}};
  EXPECT_EQ(on_array(32, 32, Dataflow::weight_stationary, layer), ns(112'283));
}

// Layers of a MobileNet (96 x 96 pixels, a quarter of the width) as products, on 4 x 4 units with stationary weights:
// the cycles that SCALE-Sim publishes (scalesim-project/SCALE-Sim at 2c78b613, edgeTPU_experiment_results/edgeTPU_ws).
// A depthwise layer is a product with one column.
TEST(Systolic, TakesThePublishedCyclesOfMobileNet) {
  struct Layer {
    compute::ProductShape shape;
    std::int64_t cycles;
  };
  const Layer layers[] = {
      {{.m = 2304, .k = 27, .n = 8}, 32'395}, {{.m = 2116, .k = 72, .n = 1}, 38'267},
      {{.m = 2304, .k = 8, .n = 16}, 18'511}, {{.m = 576, .k = 144, .n = 1}, 21'095},
      {{.m = 576, .k = 16, .n = 32}, 18'751}, {{.m = 484, .k = 288, .n = 1}, 35'567},
      {{.m = 576, .k = 32, .n = 32}, 37'503}, {{.m = 144, .k = 288, .n = 1}, 11'087},
      {{.m = 144, .k = 32, .n = 64}, 19'711}, {{.m = 144, .k = 64, .n = 64}, 39'423},
      {{.m = 36, .k = 64, .n = 128}, 23'551}, {{.m = 36, .k = 128, .n = 128}, 47'103},
      {{.m = 9, .k = 128, .n = 256}, 38'911}, {{.m = 9, .k = 256, .n = 256}, 77'823},
      {{.m = 1, .k = 256, .n = 2}, 703},
  };
  for (const Layer& layer : layers) {
    const Operation product{.kind = Operation::Kind::product, .name = "layer", .shape = layer.shape};
    EXPECT_EQ(on_array(4, 4, Dataflow::weight_stationary, product), ns(layer.cycles)) << layer.cycles;
  }
}

// 4 x 2 folds of 4 x 8 units, by hand: m lies on rows and n on columns, and k passes.
TEST(Systolic, FoldsByHand) {
  const Operation product{.kind = Operation::Kind::product, .name = "p", .shape = {.m = 13, .k = 100, .n = 9}};
  EXPECT_EQ(on_array(4, 8, Dataflow::output_stationary, product), ns(4 * 2 * (2 * 4 + 8 + 100 - 2) - 1));
  EXPECT_EQ(on_array(4, 8, Dataflow::weight_stationary, product), ns(25 * 2 * (2 * 4 + 8 + 13 - 2) - 1));
  EXPECT_EQ(on_array(4, 8, Dataflow::input_stationary, product), ns(25 * 2 * (2 * 4 + 8 + 9 - 2) - 1));
}

/// An array of 32 x 32 units with cycles of 1 ns, values of 1 byte, and buffers of 64 KiB at 10 bytes a cycle.
Options with_buffers(Dataflow dataflow) {
  Options options;
  options.model = ModelName("systolic");
  const ArrayBuffers buffers{.input = Bytes(65536),
                             .filter = Bytes(65536),
                             .output = Bytes(65536),
                             .bandwidth = Bandwidth::from_bytes_per_ns(10),
                             .value = Bytes(1)};
  options.systolic = {32, 32, 1, dataflow, buffers};
  options.local_memory = Bandwidth::from_bytes_per_ns(1e9);
  options.validate();
  return options;
}

// A product of 256 x 256 by 256 x 128 in 8 x 8 folds of 222 cycles with stationary input: half of its buffer holds the
// filter, and of the 262,144 partial results all but the last 65,536 must have left. SCALE-Sim publishes 19,984 cycles,
// 5,777 of them stalls (scalesim-project/scale-sim-v2, test/general/golden_trace_user_is).
TEST(Systolic, StallsAsThePublishedExample) {
  const Operation product{.kind = Operation::Kind::product, .name = "p", .shape = {.m = 256, .k = 256, .n = 128}};
  const double stalls = (262144 - 65536) / 10.0 - 64 * 222;
  const Time found = make_model(with_buffers(Dataflow::input_stationary))->estimate(product);
  EXPECT_EQ(found, duration_from_ns(64 * 222 - 1 + stalls, Rounding::up_to_ps));
  EXPECT_NEAR(static_cast<double>(found.ps()) * 1e-3, 19'984, 0.017 * 19'984);
}

// The same product with other dataflows, by hand. Stationary weights: half of the buffer does not hold the input, so
// that each of 31 folds after the first fetches a slice of 256 x 32 values in 819.2 cycles, during one of 350.
// Stationary output: so it is with the input, and a slice of the filter, which stays, is fetched for each column fold.
// With half of the rows the input stays: 3 slices are fetched during folds of 350 cycles.
TEST(Systolic, StallsByHand) {
  Operation product{.kind = Operation::Kind::product, .name = "p", .shape = {.m = 256, .k = 256, .n = 128}};
  const double slice = 32 * 256 / 10.0, stalls = 31 * (slice - 350);
  const Time expected = duration_from_ns(32 * 350 - 1 + stalls, Rounding::up_to_ps);
  EXPECT_EQ(make_model(with_buffers(Dataflow::weight_stationary))->estimate(product), expected);
  EXPECT_EQ(make_model(with_buffers(Dataflow::output_stationary))->estimate(product), expected);
  product.shape.m = 128;
  EXPECT_EQ(make_model(with_buffers(Dataflow::output_stationary))->estimate(product),
            duration_from_ns(16 * 350 - 1 + 3 * (slice - 350), Rounding::up_to_ps));
}

// Interfaces that are fast enough leave the cycles as they are, whatever the buffers; a product takes the time of its
// cycles then, and not of its bytes at the bandwidth of the memory.
TEST(Systolic, FastInterfacesDoNotStall) {
  const Operation product{
      .kind = Operation::Kind::product, .name = "p", .shape = {.m = 256, .k = 256, .n = 128}, .bytes = 1 << 20};
  for (const Dataflow dataflow :
       {Dataflow::weight_stationary, Dataflow::output_stationary, Dataflow::input_stationary}) {
    Options options = with_buffers(dataflow);
    options.systolic.buffers.bandwidth = Bandwidth::from_bytes_per_ns(1000);
    options.local_memory = Bandwidth::from_bytes_per_ns(1);
    EXPECT_EQ(make_model(options)->estimate(product), on_array(32, 32, dataflow, product));
  }
}

// All three buffers and their bandwidth are given, or none.
TEST(Systolic, RefusesHalfOfItsBuffers) {
  const auto refuses = [](auto change) {
    Options options = with_buffers(Dataflow::weight_stationary);
    change(options.systolic.buffers);
    EXPECT_THROW(options.validate(), Error);
  };
  refuses([](ArrayBuffers& buffers) { buffers.input = Bytes(0); });
  refuses([](ArrayBuffers& buffers) { buffers.filter = Bytes(0); });
  refuses([](ArrayBuffers& buffers) { buffers.output = Bytes(0); });
  refuses([](ArrayBuffers& buffers) { buffers.bandwidth = {}; });
}

// A product whose bytes take longer than its cycles takes what they take.
TEST(Systolic, IsBoundedByMemory) {
  Options options;
  options.model = ModelName("systolic");
  options.systolic = {128, 128, 1, Dataflow::weight_stationary};
  options.local_memory = Bandwidth::from_bytes_per_ns(1);
  const Operation product{
      .kind = Operation::Kind::product, .name = "p", .shape = {.m = 1, .k = 1, .n = 1}, .bytes = 5000};
  EXPECT_EQ(make_model(options)->estimate(product), ns(5000));
}

}  // namespace
}  // namespace orrery::compute
