#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "expect_error.hpp"
#include "orrery/config/read.hpp"
#include "orrery/network/packet_graph.hpp"
#include "temporary_folder.hpp"

namespace orrery::config {
namespace {

const std::string ring = R"(system:
  network:
    dimensions:
      - {shape: Ring, size: 8, bandwidth: 400 GB/s, latency: 500 ns}
workload:
  traces: data/workload
)";

Configuration parsed(const std::string& text) { return parse(text, "c.yaml", "/base"); }

void refused(const std::string& text, std::initializer_list<std::string_view> parts) {
  expect_error([&] { parsed(text); }, ErrorCode::bad_input, parts);
}

/// The smallest configuration with `text` in place of `what`.
std::string with(const std::string& what, const std::string& text) {
  std::string result = ring;
  result.replace(result.find(what), what.size(), text);
  return result;
}

/// With a roofline of this peak and, unless it is empty, a generated workload of this precision.
Configuration with_peak(const std::string& peak, const std::string& precision) {
  auto text = with("system:\n",
                   "system:\n  compute: {roofline: true, peak: " + peak + ", local-memory: {bandwidth: 1 TB/s}}\n");
  if (!precision.empty())
    text = text.substr(0, text.find("workload:")) +
           "workload:\n  model: {layers: 2, hidden: 64, heads: 8, sequence: 16}\n  parallel: {dp: 8, precision: " +
           precision + "}\n";
  return parsed(text);
}

// A configuration has one peak, or a peak for each precision. The compute model uses that of the workload's precision,
// and bf16's for traces.
TEST(OwnFormat, ThePeakOfThePrecisionCounts) {
  const std::string peaks = "{bf16: 989 TFLOPS, fp8: 1979 TFLOPS}";
  EXPECT_EQ(with_peak(peaks, "bf16").execution.compute.peak_flops, 989e12);
  EXPECT_EQ(with_peak(peaks, "fp8").execution.compute.peak_flops, 1979e12);
  EXPECT_EQ(with_peak(peaks, "").execution.compute.peak_flops, 989e12);  // of traces
  for (const char* precision : {"bf16", "fp8", "fp32", ""})
    EXPECT_EQ(with_peak("312 TFLOPS", precision).execution.compute.peak_flops, 312e12);
  const auto c = with_peak(peaks, "fp8");
  EXPECT_EQ(parsed(c.to_yaml()), c);
  EXPECT_NE(with_peak("{fp8: 1979 TFLOPS}", "fp8"), c);
}

// Layers that give their times need a compute model that uses recorded durations.
TEST(OwnFormat, TimesOfLayersNeedRecordedDurations) {
  auto text =
      with("system:\n", "system:\n  compute: {model: roofline, peak: 1 TFLOPS, local-memory: {bandwidth: 1 TB/s}}\n");
  text = text.substr(0, text.find("workload:")) +
         "workload:\n  model: {kind: layers, layers: [{parameters: 8}]}\n  parallel: {dp: 8}\n";
  refused(text, {"workload.model", "the compute model roofline does not use them", "system.compute.model: recorded"});
}

// A generated workload offloads nothing, the optimizer, or all its state. The configuration has this and reads back
// equal.
TEST(OwnFormat, WhatIsOffloadedReadsBackEqual) {
  const auto with_offload = [](const std::string& keys, const std::string& memory) {
    auto text = with("system:\n", "system:\n  remote-memory: " + memory + "\n");
    return parsed(text.substr(0, text.find("workload:")) +
                  "workload:\n  model: {kind: layers, layers: [{parameters: 8}]}\n  parallel: {dp: 8" + keys + "}\n");
  };
  const std::string plain = "{kind: per-npu, bandwidth: 10 GB/s}";
  const std::string pool =
      "{kind: hierarchical-pool, npus-per-node: 4, groups: 4, bandwidth: 10 GB/s, switches: 2, link-bandwidth: 5 GB/s, "
      "fabric-bandwidth: 4 GB/s, chunk-size: 8 kB}";
  const workload::Offload nothing, state{.optimizer = true},
      all{.parameters = true, .gradients = true, .optimizer = true, .on_path = true};
  const std::tuple<std::string, std::string, workload::Offload> cases[] = {
      {"", plain, nothing},
      {", offload: []", plain, nothing},
      {", offload: [optimizer], offload-collectives: network", plain, state},
      {", zero: 3, offload: [gradients, optimizer, parameters], offload-collectives: path", pool, all}};
  for (const auto& [keys, memory, expected] : cases) {
    const auto c = with_offload(keys, memory);
    EXPECT_EQ(c.workload.generated->parallel.sharding.offload, expected);
    EXPECT_EQ(parsed(c.to_yaml()), c);
  }
}

// The peaks lack the workload's precision, name an unknown one, or are empty. The error names the key and what is
// expected.
TEST(OwnFormat, APeakThatThePrecisionDoesNotHave) {
  const auto is_refused = [](const std::string& peak, const std::string& precision,
                             std::initializer_list<std::string_view> parts) {
    expect_error([&] { with_peak(peak, precision); }, ErrorCode::bad_input, parts);
  };
  is_refused("{bf16: 1 TFLOPS, fp8: 2 TFLOPS}", "fp32",
             {"system.compute.peak", "found peaks of bf16, fp8", "one of fp32, the precision of the workload"});
  is_refused("{fp8: 2 TFLOPS}", "", {"system.compute.peak", "one of bf16, the precision of the traces"});
  is_refused("{bf16: 1 TFLOPS, fp9: 2 TFLOPS}", "bf16", {"system.compute.peak.fp9", "unknown key"});
  is_refused("{bf16: 0 TFLOPS}", "bf16", {"system.compute.peak.bf16", "more than 0"});
  is_refused("{}", "bf16", {"system.compute.peak", "a compute rate with its unit"});
}

// A configuration has one dimension and the traces, and no more. Everything else has its default.
TEST(OwnFormat, TheSmallestConfigurationAndItsDefaults) {
  const auto c = parsed(ring);
  EXPECT_EQ(c.rule_set, RuleSet::physical);
  ASSERT_EQ(c.dimensions.size(), 1U);
  EXPECT_EQ(c.dimensions[0].size, 8U);
  EXPECT_EQ(c.dimensions[0].bandwidth.bytes_per_ns(), 400);
  EXPECT_EQ(c.dimensions[0].latency_ns, 500);
  EXPECT_EQ(c.collectives.all_reduce, (std::vector<collective::Algorithm>{{"ring", 0, false}}));
  EXPECT_EQ(c.collectives.endpoint_delay, Time::from_ns(10));
  EXPECT_EQ(c.workload.trace_of(NpuId(7)), "/base/data/workload.7.et");
  EXPECT_EQ(c.run.output, "results.h5");
  EXPECT_EQ(c.run.partition.text(), "block");
  ASSERT_EQ(c.inputs.size(), 1U);
  EXPECT_EQ(c.inputs[0], (std::pair<std::string, std::string>("configuration.yaml", ring)));
  EXPECT_TRUE(c.warnings.empty());
}

const std::string everything = R"(system:
  rules: astra-sim
  network:
    dimensions:
      - {shape: FullyConnected, size: 4, bandwidth: 37.7 GiB/s, latency: 123.4 ns}
      - shape: Switch
        size: 2
        bandwidth: 400 Gb/s
        latency: 1 us
  collectives:
    all-reduce: [direct2, oneHalvingDoubling]
    all-gather: [oneRing, oneDirect]
    reduce-scatter: [oneDirect3, halvingDoubling]
    all-to-all: [ring, direct]
    optimization: baseline
    chunks: 16
    active-chunks: 4
    queues: 2
    endpoint-delay: 20 ns
  compute:
    {roofline: true, peak: 989.5 TFLOPS, local-memory: {bandwidth: 3350 GB/s, latency: 80 ns, size: 80 GiB},
     streams: 2,
     cache: {size: 50 MiB, bandwidth: 12 TB/s, latency: 5 ns}, expanded-memory: {share: 0.25, bandwidth: 64 GB/s, latency: 1 us}}
  communication: {streams: 3, rendezvous: true}
  remote-memory: {kind: per-node, bandwidth: 64 GB/s, latency: 1 us, npus-per-node: 4}
workload:
  traces:
    - {npus: 0-3, file: "a.{npu}.et"}
    - {npus: 4, file: 'odd "name".et'}
    - npus: 5-7
      file: b/{npu}/{npu}.et
  dependencies: ctrl
  replay-only: true
run:
  output: out/results.h5
  force: true
  timeline: true
  memory: report
  progress: plain
  progress-interval: 500 ms
  quiet: true
  print-npus: true
  watchdog: 1 min
)";

// A configuration sets nearly every key of a system, a workload and a run. Each value reaches its option.
TEST(OwnFormat, EveryKey) {
  const auto c = parsed(everything);
  EXPECT_EQ(c.rule_set, RuleSet::astra_sim);
  EXPECT_EQ(c.execution.network.rules.rounding, Rounding::down_to_ns);
  EXPECT_EQ(c.dimensions[0].shape, topology::Shape("FullyConnected"));
  EXPECT_EQ(c.dimensions[1].bandwidth.bytes_per_ns(), 50);
  EXPECT_EQ(c.collectives.all_reduce[0], (collective::Algorithm{"direct", 2, false}));
  EXPECT_EQ(c.collectives.all_reduce[1], (collective::Algorithm{"halvingDoubling", 0, true}));
  EXPECT_EQ(c.collectives.reduce_scatter[0], (collective::Algorithm{"direct", 3, true}));
  EXPECT_EQ(c.collectives.chunks.optimization, collective::Optimization::baseline);
  EXPECT_EQ(c.collectives.chunks.splits, 16U);
  EXPECT_EQ(c.collectives.chunks.active_chunks, 4U);
  EXPECT_EQ(c.collectives.chunks.queues, 2U);
  EXPECT_EQ(c.collectives.endpoint_delay, Time::from_ns(20));
  EXPECT_EQ(c.collectives.local_memory.bytes_per_ns(), 3350);
  EXPECT_TRUE(c.collectives.rendezvous);
  EXPECT_TRUE(c.execution.rendezvous);
  EXPECT_TRUE(c.execution.compute.model->uses_operations);
  EXPECT_EQ(c.execution.compute.peak_flops, 989.5e12);
  EXPECT_EQ(c.execution.compute.local_memory.bytes_per_ns(), 3350);
  EXPECT_EQ(c.execution.compute.local_memory_latency_ns, 80);
  EXPECT_EQ(c.execution.local_memory.size, Bytes(std::uint64_t{80} << 30));
  EXPECT_EQ(c.execution.compute.cache.size, Bytes(50 << 20));
  EXPECT_EQ(c.execution.compute.cache.bandwidth.bytes_per_ns(), 12000);
  EXPECT_EQ(c.execution.compute.cache.latency_ns, 5);
  EXPECT_EQ(c.execution.compute.expanded.share, 0.25);
  EXPECT_EQ(c.execution.compute.expanded.bandwidth.bytes_per_ns(), 64);
  EXPECT_EQ(c.execution.compute.expanded.latency_ns, 1000);
  EXPECT_EQ(c.execution.compute_streams, 2U);
  EXPECT_EQ(c.execution.comm_streams, 3U);
  EXPECT_TRUE(c.execution.replay_only);
  EXPECT_TRUE(c.execution.timeline);
  EXPECT_EQ(c.remote_memory.kind, memory::RemoteMemoryKind("per-node"));
  EXPECT_EQ(c.remote_memory.npus_per_node, 4U);
  EXPECT_EQ(c.workload.trace_of(NpuId(3)), "/base/a.3.et");
  EXPECT_EQ(c.workload.trace_of(NpuId(4)), "/base/odd \"name\".et");
  EXPECT_EQ(c.workload.trace_of(NpuId(6)), "/base/b/6/6.et");
  EXPECT_EQ(c.workload.dependencies, trace::Dependencies::ctrl);
  EXPECT_EQ(c.run.output, "/base/out/results.h5");
  EXPECT_EQ(c.run.memory, ExcessPolicy::report);
  EXPECT_EQ(c.run.progress, Progress::plain);
  EXPECT_EQ(c.run.progress_interval_s, 0.5);
  EXPECT_EQ(c.run.watchdog_s, 60);
  EXPECT_TRUE(c.run.force && c.run.quiet && c.run.print_npus);
}

// A configuration is written out with all its values and read again from another folder. The result is equal to the
// first one.
TEST(OwnFormat, TheResolvedConfigurationReadsBackEqual) {
  for (const std::string& text : {ring, everything}) {
    const auto c = parsed(text);
    const auto again = parse(c.to_yaml(), "resolved.yaml", "/elsewhere");
    EXPECT_TRUE(again == c) << c.to_yaml() << "\n---\n" << again.to_yaml();
    EXPECT_EQ(again.to_yaml(), c.to_yaml());
  }
  EXPECT_FALSE(parsed(ring) == parsed(everything));
}

// A link of a graph has one rate and one delay, or one of each direction. Both are written back, and the dimension has
// those of the slowest route.
TEST(OwnFormat, LinksOfAGraphHaveTwoDirections) {
  const auto of_links = [](const std::string& first) {
    return parsed("system: {network: {graph: {hosts: 2, switches: 1, links: [" + first +
                  ", [1, 2, 100 Gb/s, 1 us]]}, dimensions: [{shape: Switch, size: 2}]}}\n"
                  "workload: {traces: data/workload}\n");
  };
  const auto c = of_links("[0, 2, [100 Gb/s, 25 Gb/s], [1 us, 500 ns]]");
  const auto links = c.execution.network.graph->graph.links();
  const network::PacketGraph::Way up{100'000'000'000, Time::from_ns(1000)}, down{25'000'000'000, Time::from_ns(500)};
  EXPECT_EQ(links[0].way_to(2), up);
  EXPECT_EQ(links[0].way_to(0), down);
  EXPECT_FALSE(links[1].back);
  EXPECT_EQ(c.dimensions[0].bandwidth.bytes_per_ns(), 3.125);
  EXPECT_EQ(c.dimensions[0].latency_ns, 1000);
  EXPECT_NE(c.to_yaml().find("[0, 2, [100 Gb/s, 25 Gb/s], [1 us, 500 ns]]"), std::string::npos) << c.to_yaml();
  EXPECT_NE(c.to_yaml().find("[1, 2, 100 Gb/s, 1 us]"), std::string::npos) << c.to_yaml();
  EXPECT_TRUE(parse(c.to_yaml(), "resolved.yaml", "/elsewhere") == c);
  EXPECT_FALSE(of_links("[0, 2, [25 Gb/s, 100 Gb/s], [500 ns, 1 us]]") == c);
  EXPECT_TRUE(of_links("[0, 2, [100 Gb/s, 100 Gb/s], 1 us]") == of_links("[0, 2, 100 Gb/s, [1 us, 1 us]]"));
}

// The workload names one trace file for all NPUs. Each NPU reads this file.
TEST(OwnFormat, OneFileForAllNpus) {
  const auto c = parsed(with("data/workload", "{all: one.et}"));
  EXPECT_EQ(c.workload.trace_of(NpuId(0)), "/base/one.et");
  EXPECT_EQ(c.workload.trace_of(NpuId(7)), "/base/one.et");
}

// A network has a switch, a 2D torus and a 3D torus. Each torus becomes that many rings with its bandwidth and latency,
// and its algorithm becomes that of each ring.
TEST(OwnFormat, ATorusStandsForItsRings) {
  const auto c = parse(R"(system:
  network:
    dimensions:
      - {shape: Switch, size: 8, bandwidth: 400 GB/s, latency: 300 ns}
      - {shape: Torus2D, size: 4x6, bandwidth: 50 GB/s, latency: 1 us}
      - {shape: Torus3D, size: 27, bandwidth: 25 GB/s, latency: 2 us}
  collectives: {all-reduce: [direct, ring, direct2], all-to-all: [oneRing]}
)",
                       "c.yaml", {}, true);
  std::vector<std::uint32_t> sizes;
  std::vector<std::string> all_reduce;
  for (const auto& dimension : c.dimensions) {
    sizes.push_back(dimension.size);
    EXPECT_EQ(dimension.shape, sizes.size() > 1 ? topology::Shape("Ring") : topology::Shape("Switch"));
  }
  for (const auto& algorithm : c.collectives.all_reduce) all_reduce.push_back(name(algorithm));
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{8, 4, 6, 3, 3, 3}));
  EXPECT_EQ(c.dimensions[2].latency_ns, 1000);
  EXPECT_EQ(c.dimensions[5].bandwidth.bytes_per_ns(), 25);
  EXPECT_EQ(all_reduce, (std::vector<std::string>{"direct", "ring", "ring", "direct2", "direct2", "direct2"}));
  EXPECT_EQ(c.collectives.all_gather.size(), 6U);
  EXPECT_EQ(c.collectives.all_to_all.size(), 1U);
  EXPECT_TRUE(parse(c.to_yaml(), "resolved.yaml", {}, true) == c) << c.to_yaml();
}

// A switch has four links side by side and an oversubscription of 1.5. The dimension has both, and values out of range
// are refused.
TEST(OwnFormat, LinksSideBySideAndOversubscription) {
  const auto c = parsed(with("shape: Ring, size: 8", "shape: Switch, size: 8, links: 4, oversubscription: 1.5"));
  EXPECT_EQ(c.dimensions[0].links, 4U);
  EXPECT_EQ(c.dimensions[0].oversubscription, 1.5);
  EXPECT_TRUE(parse(c.to_yaml(), "resolved.yaml", "/elsewhere") == c) << c.to_yaml();
  refused(with("size: 8", "size: 8, links: 0"), {"c.yaml:4", "dimensions.0.links", "1 or more"});
  refused(with("size: 8", "size: 8, oversubscription: 2:1"), {"dimensions.0.oversubscription"});
}

// A network has a fat tree and two dragonflies. Each has its parameters and suitable algorithms; parameters that are
// missing or of another shape are refused, and so is the congestion-unaware network.
TEST(OwnFormat, FatTreeAndDragonfly) {
  const std::string text = R"(system:
  network:
    model: congestion-aware
    dimensions:
      - {shape: FatTree, ports: 8, size: 32, bandwidth: 50 GB/s, latency: 1 us, oversubscription: 2}
      - {shape: Dragonfly, npus-per-router: 2, size: 16, bandwidth: 25 GB/s, latency: 2 us}
      - {shape: Dragonfly, npus-per-router: 1, routers: 3, global-links: 4, size: 6, bandwidth: 25 GB/s, latency: 2 us}
)";
  const auto c = parse(text, "c.yaml", {}, true);
  EXPECT_EQ(c.dimensions[0].parameter("ports"), 8U);
  EXPECT_EQ(c.dimensions[0].oversubscription, 2);
  EXPECT_EQ(c.dimensions[1].parameter("routers"), 4U);
  EXPECT_EQ(c.dimensions[1].parameter("global-links"), 2U);
  EXPECT_EQ(c.dimensions[2].parameter("routers"), 3U);
  EXPECT_EQ(c.dimensions[2].parameter("global-links"), 4U);
  EXPECT_EQ(name(c.collectives.all_reduce[0]), "halvingDoubling");
  EXPECT_EQ(name(c.collectives.all_reduce[2]), "ring");
  EXPECT_EQ(name(c.collectives.all_to_all[1]), "direct");
  EXPECT_TRUE(parse(c.to_yaml(), "resolved.yaml", {}, true) == c) << c.to_yaml();
  const auto is_refused = [&](const std::string& part, const std::string& by,
                              std::initializer_list<std::string_view> texts) {
    std::string changed = text;
    changed.replace(changed.find(part), part.size(), by);
    expect_error([&] { parse(changed, "c.yaml", {}, true); }, ErrorCode::bad_input, texts);
  };
  is_refused("ports: 8, ", "",
             {"c.yaml:5", "dimensions.0.ports", "missing", "such as '16'", "Meaning: ports k of a switch"});
  is_refused("npus-per-router: 2, ", "", {"dimensions.1.npus-per-router", "missing"});
  is_refused("ports: 8", "routers: 8, ports: 8",
             {"dimensions.0.routers", "no meaning here", "only with shape: Dragonfly"});
  is_refused("npus-per-router: 2", "npus-per-router: 2, ports: 8",
             {"dimensions.1.ports", "no meaning here", "only with shape: FatTree"});
  is_refused("congestion-aware", "congestion-unaware",
             {"dimension 0 (FatTree)", "the congestion-unaware network does not have this shape",
              "Ring, Mesh, FullyConnected or Switch", "congestion-aware"});
}

// The size of a torus is a product, a list, or a square or cubic number. Each is read, and any other text is refused
// with the forms that are possible.
TEST(OwnFormat, SizesOfATorus) {
  const auto torus = [](const std::string& size) {
    return with("shape: Ring, size: 8", "shape: Torus2D, size: " + size);
  };
  for (const char* size : {"[2, 4]", "2x4"}) EXPECT_EQ(parsed(torus(size)).dimensions[1].size, 4U);
  EXPECT_EQ(parsed(torus("16")).dimensions[1].size, 4U);
  for (const char* size : {"8", "2x", "x4", "2x4x1", "[8]", "[2, 4, 1]", "2*4", "02x4", "0x4"})
    refused(torus(size), {"c.yaml:4", "dimensions.0.size", "4x8 or [4, 8], or a square number of NPUs"});
  refused(torus("[2, 0]"), {"dimensions.0.size.1", "found '0'", "1 or more"});
  refused(with("shape: Ring, size: 8", "shape: Torus3D, size: 9"), {"cubic number"});
  const std::string two = "size: 2x4, bandwidth: 400 GB/s, latency: 500 ns}\n  collectives: {all-reduce: [ring, ring]}";
  refused(with("shape: Ring, size: 8, bandwidth: 400 GB/s, latency: 500 ns}", "shape: Torus2D, " + two),
          {"a list of 2", "a list of 1 algorithm, one for each entry of the dimensions"});
}

// A network has a fully connected dimension and two switches, and no algorithms are named. Each dimension gets the
// algorithms that suit its shape and size.
TEST(OwnFormat, AlgorithmsSuitTheShapes) {
  const auto c = parse(R"(system:
  network:
    dimensions:
      - {shape: FullyConnected, size: 3, bandwidth: 1 GB/s, latency: 0 ns}
      - {shape: Switch, size: 4, bandwidth: 1 GB/s, latency: 0 ns}
      - {shape: Switch, size: 6, bandwidth: 1 GB/s, latency: 0 ns}
)",
                       "c.yaml", {}, true);
  ASSERT_EQ(c.collectives.all_reduce.size(), 3U);
  EXPECT_EQ(name(c.collectives.all_reduce[0]), "direct");
  EXPECT_EQ(name(c.collectives.all_reduce[1]), "halvingDoubling");
  EXPECT_EQ(name(c.collectives.all_reduce[2]), "ring");
  EXPECT_EQ(name(c.collectives.all_to_all[1]), "direct");
}

// A switch carries out operations, and broadcast has algorithms of its own. The options hold both, and wrong or
// misspelt values are refused.
TEST(OwnFormat, SwitchesThatReduceAndAlgorithmsOfBroadcast) {
  const std::string text = R"(system:
  network:
    dimensions:
      - {shape: Switch, size: 6, bandwidth: 1 GB/s, latency: 0 ns, in-switch-operations: 4}
      - {shape: Switch, size: 2, bandwidth: 1 GB/s, latency: 0 ns}
  collectives:
    all-reduce: [inSwitch, ring]
    broadcast: [inSwitch, binomialTree]
  communication: {streams: 2}
)";
  const auto c = parse(text, "c.yaml", {}, true);
  EXPECT_EQ(c.dimensions[0].in_switch_operations, 4U);
  EXPECT_EQ(c.dimensions[1].in_switch_operations, 0U);
  EXPECT_EQ(name(c.collectives.all_reduce[0]), "inSwitch");
  EXPECT_EQ(name(c.collectives.broadcast[1]), "binomialTree");
  EXPECT_TRUE(c.collectives.reduce.empty());
  EXPECT_EQ(c.collectives.collectives_at_a_time, 2U);
  EXPECT_EQ(parse(c.to_yaml(), "again.yaml", {}, true), c);
  const auto edited = [&](const std::string& what, const std::string& by) {
    std::string result = text;
    return result.replace(result.find(what), what.size(), by);
  };
  const auto refused = [](const std::string& of, std::initializer_list<std::string_view> parts) {
    expect_error([&] { parse(of, "c.yaml", {}, true); }, ErrorCode::bad_input, parts);
  };
  refused(edited("operations: 4", "operations: many"), {"c.yaml:4", "in-switch-operations", "'many'"});
  refused(edited("[inSwitch, binomialTree]", "[inSwitch]"), {"c.yaml:8", "broadcast", "a list of 2 algorithms"});
  refused(edited("inSwitch, ring", "inSwich, ring"), {"c.yaml:7", "Did you mean 'inSwitch'?"});
}

// A configuration has a misspelt key. The error names its line and path and the nearest known key, or all known keys if
// none is near.
TEST(OwnFormat, UnknownKeysAreErrorsWithTheNearestKnown) {
  refused(with("bandwidth", "bandwith"),
          {"c.yaml:4", "'system.network.dimensions.0.bandwidth'", "missing", "Is 'bandwith' meant for it?"});
  refused(ring + "  tracks: x\n", {"c.yaml:7", "'workload.tracks'", "unknown key", "Did you mean 'traces'?"});
  refused(ring + "sistem: 1\n", {"c.yaml:7", "'sistem'", "Did you mean 'system'?"});
  refused(ring + "zzzzzzzz: 1\n",
          {"Known here: system, perturbation, cost, campaign, cluster, jobs, workload, provenance, run."});
}

// A mapping has a key twice. The error names the key and both lines.
TEST(OwnFormat, DuplicateKeys) {
  refused(ring + "  traces: again\n", {"c.yaml:7", "'traces'", "again, first in line 6"});
  refused(with("size: 8", "size: 8, size: 9"), {"c.yaml:4", "'size'"});
}

// A configuration lacks a key that it needs. The error names the path and shows an example.
TEST(OwnFormat, MissingKeys) {
  refused("run: {quiet: true}\n", {"c.yaml", "'system.network.dimensions'", "missing", "shape: Ring"});
  refused(with(", latency: 500 ns", ""), {"c.yaml:4", "dimensions.0.latency", "missing", "'500 ns'"});
  refused(ring.substr(0, ring.find("workload")), {"'workload.traces'", "missing", "prefix"});
  refused(ring + "run:\nsystem2:\n", {"system2"});
  refused("", {"missing"});
}

// A configuration has one value at a time of a wrong type or out of range. The error names the key, what was found and
// what is expected.
TEST(OwnFormat, WrongTypesAndValues) {
  refused(with("400 GB/s", "400"), {"c.yaml:4", "system.network.dimensions.0.bandwidth", "found '400'", "400 GB/s"});
  refused(with("400 GB/s", "0 GB/s"), {"1 B/s or more"});
  refused(with("size: 8", "size: 010"), {"c.yaml:4", "leading zero", "octal"});
  refused(with("size: 8", "size: 0"), {"dimensions.0.size", "found '0'", "1 or more"});
  refused(with("size: 8", "size: 8.0"), {"whole number"});
  refused(with("size: 8", "size: '8'"), {"the text '8'", "whole number"});
  refused(with("size: 8", "size: [8]"), {"a list of 1"});
  refused(with("shape: Ring", "shape: ring"),
          {"Ring, Mesh, FullyConnected, Switch, FatTree, Dragonfly, Torus2D, Torus3D, Mesh2D or Crossbar", "Did you mean 'Ring'?"});
  refused(with("500 ns", "2000 s"), {"at most 1000 s"});
  refused(ring + "run: {force: yes}\n", {"c.yaml:7", "'run.force'", "found 'yes'", "true or false"});
  refused(ring + "run: 5\n", {"'run'", "found '5'", "mapping"});
  refused(ring + "run: {progress: plane}\n", {"auto, plain or none", "Did you mean 'plain'?"});
  refused(ring + "run: {memory: ignore}\n", {"run.memory", "error or report"});
  const auto refused_size = [](const std::string& size, std::initializer_list<std::string_view> parts) {
    expect_error([&] { parsed("system: {compute: {local-memory: {size: " + size + "}}}\n"); }, ErrorCode::bad_input,
                 parts);
  };
  refused_size("0 B", {"system.compute.local-memory.size", "found '0 B'", "1 B or more", "Leave it out"});
  refused_size("80", {"system.compute.local-memory.size", "without a unit"});
  refused(ring + "run: {progress-interval: 0 s}\n", {"more than 0 s"});
  refused(ring + "  dependencies: dta\n", {"auto, data, ctrl or both", "'data'"});
  refused(with("system:\n", "system:\n  rules: astrasim\n"), {"physical or astra-sim", "Did you mean 'astra-sim'?"});
  refused(with("system:\n", "system:\n  collectives: {all-reduce: [rings]}\n"),
          {"found 'rings'", "Did you mean 'ring'?"});
  refused(with("system:\n", "system:\n  collectives: {all-reduce: [direct0]}\n"), {"found 'direct0'"});
  refused(with("system:\n", "system:\n  collectives: {all-reduce: [ring, ring]}\n"),
          {"a list of 2", "a list of 1 algorithm, one for each dimension"});
  refused(with("system:\n", "system:\n  collectives: {all-reduce: oneRing}\n"),
          {"found 'oneRing'", "such as [oneRing]"});
  refused(with("size: 8", "size: 8, oversubscription: nan"), {"found 'nan'", "a number, 1 to 1e6"});
  refused(with("size: 8", "size: 8, oversubscription: 2 x"), {"a number without a unit, 1 to 1e6"});
  refused(with("system:\n", "system:\n  collectives: {chunks: 0}\n"), {"system.collectives.chunks", "1 or more"});
  refused(with("system:\n", "system:\n  compute: {roofline: true}\n"), {"system.compute.peak", "roofline is on"});
  refused(with("system:\n", "system:\n  compute: {roofline: true, peak: 1 TFLOPS}\n"), {"local-memory.bandwidth"});
  const auto with_levels = [](const std::string& keys) {
    return with(
        "system:\n",
        "system:\n  compute: {roofline: true, peak: 1 TFLOPS, local-memory: {bandwidth: 1 TB/s}, " + keys + "}\n");
  };
  refused(with_levels("cache: {size: 1 MiB}"), {"system.compute.cache.bandwidth", "such as '12 TB/s'"});
  refused(with_levels("cache: {bandwidth: 2 TB/s}"), {"system.compute.cache.size", "such as '50 MiB'"});
  refused(with_levels("cache: {size: 1 MiB, bandwidth: 500 GB/s}"),
          {"system.compute.cache", "found 500 GB/s, no more than the 1000 GB/s", "a cache that is faster"});
  refused(with_levels("expanded-memory: {share: 1, bandwidth: 1 GB/s}"),
          {"system.compute.expanded-memory.share", "below 1"});
  refused(with_levels("expanded-memory: {share: 0.5, bandwidth: 1 GB/s, size: 1 GB}"), {"expanded-memory.size"});
  refused(with("system:\n", "system:\n  compute: {cache: {size: 1 MiB, bandwidth: 2 TB/s}}\n"),
          {"system.compute.cache", "without the roofline"});
  refused(with("system:\n", "system:\n  remote-memory: {kind: pool}\n"), {"system.remote-memory.bandwidth"});
  refused(with("system:\n", "system:\n  remote-memory: {kind: per-node, bandwidth: 1 GB/s, npus-per-node: 3}\n"),
          {"npus-per-node", "divisor of the 8 NPUs"});
}

// The remote memory is a hierarchical pool. The configuration has its values; missing keys and numbers that do not
// divide each other are refused by key.
TEST(OwnFormat, HierarchicalPool) {
  const std::string pool =
      "{kind: hierarchical-pool, bandwidth: 100 GB/s, latency: 1 us, npus-per-node: 4, groups: 6, switches: 3, "
      "link-bandwidth: 50 GB/s, link-latency: 200 ns, fabric-bandwidth: 256 GB/s, fabric-latency: 5 ns, chunk-size: 1 "
      "MiB}";
  const auto configured = [&](std::string text) {
    return with("system:\n", "system:\n  remote-memory: " + text + "\n");
  };
  const auto without = [&](const std::string& key) {
    std::string text = pool;
    const auto at = text.find(", " + key + ":");
    return configured(text.erase(at, std::min(text.find(',', at + 1), text.size() - 1) - at));
  };
  const auto c = parsed(configured(pool));
  const auto& memory = c.remote_memory;
  EXPECT_EQ(memory.kind, memory::RemoteMemoryKind("hierarchical-pool"));
  EXPECT_EQ(memory.bandwidth.bytes_per_ns(), 100);
  EXPECT_EQ(memory.npus_per_node, 4U);
  EXPECT_EQ(memory.hierarchy.groups, 6U);
  EXPECT_EQ(memory.hierarchy.switches, 3U);
  EXPECT_EQ(memory.hierarchy.link.bytes_per_ns(), 50);
  EXPECT_EQ(memory.hierarchy.link_latency_ns, 200);
  EXPECT_EQ(memory.hierarchy.fabric.bytes_per_ns(), 256);
  EXPECT_EQ(memory.hierarchy.fabric_latency_ns, 5);
  EXPECT_EQ(memory.hierarchy.chunk, Bytes(1 << 20));
  EXPECT_TRUE(parse(c.to_yaml(), "resolved.yaml") == c);
  for (const std::string key :
       {"bandwidth", "npus-per-node", "groups", "switches", "link-bandwidth", "fabric-bandwidth", "chunk-size"})
    refused(without(key), {"system.remote-memory." + key, "missing"});
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = pool;
    return configured(text.replace(text.find(from), from.size(), to));
  };
  refused(changed("switches: 3", "switches: 4"), {"c.yaml:2", "switches", "found 4", "divisor of the 6 memory groups"});
  refused(changed("npus-per-node: 4", "npus-per-node: 5"), {"npus-per-node", "divisor of the 8 NPUs"});
  refused(changed("1 MiB", "1 B"), {"chunk-size", "found 1 byte", "8 NPUs from 6 groups"});
  refused(changed("hierarchical-pool", "pool"), {"system.remote-memory.groups"});
}

// The list of traces leaves an NPU out, names one twice, or names one that is not there. The error names the NPU or the
// range.
TEST(OwnFormat, TracesThatDoNotHoldEveryNpuOnce) {
  refused(with("data/workload", "[{npus: 0-6, file: a}]"), {"no trace for NPU 7"});
  refused(with("data/workload", "[{npus: 0-5, file: a}, {npus: 5-7, file: a}]"), {"NPU 5 has a trace already"});
  refused(with("data/workload", "[{npus: 0-8, file: a}]"), {"found '0-8'", "below the number of NPUs, 8"});
  refused(with("data/workload", "[{npus: 3-1, file: a}]"), {"ascends"});
  refused(with("data/workload", "[{npus: 0-7, fil: a}]"), {"workload.traces.0.file", "missing"});
}

// A file is no YAML, holds two documents, is nested too deeply, or is a list. It is refused in bounded time with its
// line.
TEST(OwnFormat, TextsThatAreNoYaml) {
  refused("system: {a: [}\n", {"c.yaml:1", "not well-formed YAML"});
  refused("\tsystem: 1\n", {"c.yaml:1", "not well-formed YAML"});
  refused("a: 1\n---\nb: 2\n", {"c.yaml:2", "the text goes on", "one document"});
  refused(", 5 ]\na: 1\n", {"c.yaml:1"});  // YAML::LoadAll does not return
  refused("a: [1]]\n", {"c.yaml:1"});
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "[";
  refused(deep, {"c.yaml"});
  refused("- 1\n- 2\n", {"a list of 2", "mapping"});
}

// A file has three independent faults. `check` finds all three.
TEST(OwnFormat, CheckTellsEveryFault) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "c.yaml";
  std::ofstream(path) << with("400 GB/s", "400") << "  tracks: x\nrun: {force: 1}\n";
  const auto findings = examine({.file = path});
  EXPECT_EQ(findings.faults.count(), 3U);
}

/// Returns the processor time in seconds that it takes to refuse `head`, then `count` times the line with its number in
/// the place of "{}". Other processes have no part in it.
double seconds_to_refuse(const std::string& head, const char* line, int count) {
  std::string text = head;
  for (int i = 0; i < count; ++i) text += fmt::format(fmt::runtime(line), i);
  const std::clock_t start = std::clock();
  EXPECT_THROW(parsed(text), Error) << line;
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// A file has 1000, then 20,000 lines with a fault each. The processor time grows with the size, and not with its
// square.
TEST(OwnFormat, LargeFilesTakeTimeInProportionToTheirSize) {
  const std::string dimensions = ring.substr(0, ring.find("workload:"));
  const std::pair<std::string, const char*> texts[] = {
      {ring, "  unknown-key-{}: 1\n"},
      {ring + "perturbation:\n  slow-npus:\n", "    - {{npus: 3, compute: {}0000000}}\n"},
      {dimensions + "  collectives:\n    all-reduce:\n", "      - rng{}\n"},
      {"system:\n  network:\n    dimensions:\n",
       "      - {{shape: Rng{}, size: 1, bandwidth: 1 GB/s, latency: 1 ns}}\n"},
      {"workload:\n", "  traces: a{}\n"},
  };
  for (const auto& [head, line] : texts) {
    const double few = seconds_to_refuse(head, line, 1000);
    // Were it to grow with the square of the size, this would take 400 times as long.
    EXPECT_LT(seconds_to_refuse(head, line, 20000), 100 * few + 0.5) << line;
  }
}

class Overrides : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(path_) << ring; }
  Configuration with_settings(std::vector<std::string> settings, std::vector<FlagValue> flags = {}) const {
    return read({.file = path_, .overrides = std::move(settings), .flags = std::move(flags)});
  }
  test::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "c.yaml";
};

// Settings on the command line replace a value of the file, add a key, and set one twice. The last setting counts, and
// paths are relative to the current folder.
TEST_F(Overrides, ReplaceAndAddValues) {
  const auto c = with_settings({"system.network.dimensions.0.size=16", "system.collectives.all-reduce=[direct]",
                                "system.collectives.chunks=8", "run.output=here.h5", "system.collectives.chunks=4"});
  EXPECT_EQ(c.dimensions[0].size, 16U);
  EXPECT_EQ(name(c.collectives.all_reduce[0]), "direct");
  EXPECT_EQ(c.collectives.chunks.splits, 4U);
  EXPECT_EQ(c.run.output, "here.h5");  // from the current folder, not the file's
}

// One setting names the file of a model or of a system, and others change keys of it, before or behind it on the
// command line. The keys of the file hold, with these changes.
TEST_F(Overrides, ChangeKeysOfAFileThatAnotherNames) {
  const auto configs = std::filesystem::path(ORRERY_SOURCE_DIR) / "configs";
  const std::string system = fmt::format("system={}", (configs / "systems/tpu-v4-torus.yaml").string());
  const std::string model = fmt::format("workload.model={}", (configs / "models/llama3-8b.yaml").string());
  const std::string base = fmt::format("workload.model.base={}", (configs / "models/llama3-8b.yaml").string());
  const std::string size = "system.network.dimensions.0.size=2", layers = "workload.model.layers=4";
  std::ofstream(path_) << "workload: {parallel: {dp: 512}}\n";
  for (const auto& settings :
       {std::vector{system, size, model, layers}, {layers, model, size, system}, {system, size, base, layers}}) {
    const auto c = with_settings(settings);
    EXPECT_EQ(c.dimensions.at(0).size, 2U);
    EXPECT_EQ(c.dimensions.size(), 3U);
    const auto& transformer = std::get<workload::Transformer>(c.workload.generated->model);
    EXPECT_EQ(transformer.layers, 4U);
    EXPECT_EQ(transformer.hidden, 4096U);
  }
}

// A setting names a base where the file names another one, as a scalar or in a mapping. It takes its place: nothing of
// the file's base is left, and the file's own keys hold.
TEST_F(Overrides, ABaseTakesThePlaceOfAnother) {
  const auto configs = std::filesystem::path(ORRERY_SOURCE_DIR) / "configs";
  const std::string system = (configs / "systems/dgx-h100-superpod.yaml").string();
  const std::string grok = (configs / "models/grok-1.yaml").string();
  const std::string llama = (configs / "models/llama3-8b.yaml").string();
  const std::string base = "workload.model.base=" + llama;
  for (const std::string& model : {grok, fmt::format("{{base: {}, sequence: 4096}}", grok)}) {
    std::ofstream(path_) << "system: " << system << "\nworkload: {model: " << model << ", parallel: {dp: 1024}}\n";
    const auto c = with_settings({base});
    const auto& transformer = std::get<workload::Transformer>(c.workload.generated->model);
    EXPECT_EQ(transformer.layers, 32U);
    EXPECT_EQ(transformer.hidden, 4096U);
    EXPECT_EQ(transformer.sequence, model == grok ? 8192U : 4096U);
  }
}

// `library: NAME` is short for `library: {name: NAME}`.
TEST_F(Overrides, ALibraryMayBeNamedByAWord) {
  const auto c = with_settings({"system.collectives.library=nccl-h100"});
  ASSERT_TRUE(c.collectives.library.library.has_value());
  EXPECT_EQ(c.collectives.library.library->name(), "nccl-h100");
}

// A key has a setting and a flag. The flag counts.
TEST_F(Overrides, FlagsStandAboveThem) {
  const std::vector<FlagValue> flags = {{"run.output", "flag.h5", "--output"},
                                        {"run.partition", "block", "--partition"},
                                        {"workload.dependencies", "data", "--dependencies"}};
  const auto c = with_settings({"run.output=set.h5", "run.partition=nowhere", "workload.dependencies=ctrl"}, flags);
  EXPECT_EQ(c.run.output, "flag.h5");
  EXPECT_EQ(c.run.partition.text(), "block");
  EXPECT_EQ(c.workload.dependencies, trace::Dependencies::data);
}

// A setting or a flag names the partition. Each strategy is read back as its text, and a dimension that is not there is
// refused.
TEST_F(Overrides, Partitions) {
  const auto of = [&](const std::string& value) { return with_settings({"run.partition=" + value}).run.partition; };
  for (const std::string text : {"block", "round-robin", "metis", "dimension:0"}) {
    EXPECT_EQ(of(text).text(), text);
    EXPECT_FALSE(of(text).is_rank_map()) << text;
  }
  const std::vector<FlagValue> flags = {{"run.partition", "metis", "--partition"}};
  EXPECT_EQ(with_settings({"run.partition=round-robin"}, flags).run.partition.text(), "metis");
  for (const std::string value : {"dimension:7", "dimension:", "dimension:x", "dimension:-1"})
    expect_error([&] { of(value); }, ErrorCode::bad_input, {"run.partition", value});
}

// A setting has an unknown path, a wrong value or no value. The error shows the setting and what is wrong with it.
TEST_F(Overrides, UnknownPathsAndBadValues) {
  const auto bad = [&](const std::string& setting, ErrorCode code, std::initializer_list<std::string_view> parts) {
    expect_error([&] { with_settings({setting}); }, code, parts);
  };
  bad("system.colectives.chunks=8", ErrorCode::bad_input,
      {"--set system.colectives.chunks=8", "Did you mean 'collectives'?"});
  bad("system.network.dimensions.3.size=8", ErrorCode::bad_input, {"no such entry in a list of 1"});
  bad("workload.traces.a=8", ErrorCode::bad_input, {"no keys"});
  bad("system.collectives.chunks=none", ErrorCode::bad_input, {"--set system.collectives.chunks=none", "whole number"});
  bad("system.collectives.chunks=[", ErrorCode::bad_input, {"not well-formed YAML"});
  bad("system.collectives.chunks", ErrorCode::usage, {"KEY.PATH=VALUE"});
  bad("system..chunks=1", ErrorCode::usage, {"empty name"});
}

// The configuration, the groups or the rank map cannot be read. The error names the file, the reason and the key.
TEST_F(Overrides, FilesThatCannotBeRead) {
  expect_error([] { read({.file = "no/such.yaml"}); }, ErrorCode::bad_input, {"no/such.yaml", "no such file"});
  expect_error([] { read({.file = "/"}); }, ErrorCode::bad_input, {"is a directory"});
  expect_error([&] { with_settings({"workload.groups=no/groups.json"}); }, ErrorCode::bad_input,
               {"workload.groups", "no/groups.json", "no such file"});
  expect_error([&] { with_settings({"run.partition=round-robbin"}); }, ErrorCode::bad_input,
               {"no such file", "Did you mean 'round-robin'?"});
  expect_error([&] { with_settings({"run.partition=no/map"}); }, ErrorCode::bad_input, {"no/map", "no such file"});
}

// A faulty partition is named in the file or by an option. The error points to the line of the file or to the option.
TEST_F(Overrides, AFaultyPartitionIsBlamedOnWhatNamesIt) {
  for (const auto& [value, fault] :
       {std::pair("metsi", "metsi: no such file; expected a strategy or a rank map"),
        std::pair("dimension:7", "found dimension:7; expected a dimension of the topology"),
        std::pair("dimension:x", "found 'dimension:x'; expected the number of a dimension"),
        std::pair("/dev/null", "this is not a regular file")}) {
    std::ofstream(path_) << ring << "run:\n  output: x.h5\n  partition: " << value << "\n";
    const auto line = 3 + std::count(ring.begin(), ring.end(), '\n');
    expect_error([&] { with_settings({}); }, ErrorCode::bad_input,
                 {fmt::format("{}:{}: key 'run.partition': ", path_.string(), line), fault});
    std::ofstream(path_) << ring;
    for (const std::string option : {"--partition", "--strategy"}) {
      const std::vector<FlagValue> flags = {{"run.partition", value, option}};
      if (std::string_view(value) != "/dev/null")
        expect_error([&] { with_settings({}, flags); }, ErrorCode::bad_input, {"option " + option + ": " + fault});
    }
  }
}

// Each configuration of configs/ is read without its traces. All load and read back equal.
TEST(Configs, AllOfTheProjectsOwnLoad) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(ORRERY_SOURCE_DIR) / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    ++count;
    // Traces are made later: only what the configuration itself says is looked at.
    const auto c = read({.file = entry.path(), .system_only = true});
    for (const auto* const workload : c.workloads())
      EXPECT_EQ(workload->traces.empty(), workload->generated.has_value()) << entry.path();
    EXPECT_TRUE(parse(c.to_yaml(), "resolved.yaml", {}, true) == c) << entry.path();
    if (entry.path().filename() == "llm-64.yaml") {
      EXPECT_EQ(c.topology().num_npus(), 64U);
      EXPECT_EQ(c.workload.trace_of(NpuId(63)),
                std::filesystem::path(ORRERY_SOURCE_DIR) / "build/quickstart/llm-64/workload.63.et");
    }
  }
  EXPECT_GE(count, 2);
}

}  // namespace
}  // namespace orrery::config
