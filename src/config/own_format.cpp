#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "formats.hpp"
#include "orrery/base/text.hpp"
#include "orrery/compute/options.hpp"
#include "orrery/config/npu_list.hpp"
#include "orrery/config/units.hpp"
#include "orrery/partition/strategy.hpp"
#include "section.hpp"

namespace orrery::config {
namespace {

using collective::Algorithm;
using topology::Dimension;
using topology::Shape;

constexpr std::string_view traces_example =
    "a prefix (PREFIX.<npu>.et), {all: FILE}, or a list such as [{npus: 0-31, file: \"a.{npu}.et\"}]";

/// The algorithm for a dimension where none is written: what suits its shape.
Algorithm natural_algorithm(const Dimension& dimension, bool all_to_all) {
  if (dimension.shape == Shape::ring || dimension.shape == Shape::mesh) return {"ring"};
  if (dimension.shape == Shape::fully_connected || all_to_all) return {"direct"};
  return {std::has_single_bit(dimension.size) ? "halvingDoubling" : "ring"};
}

std::vector<Algorithm> natural_algorithms(const std::vector<Dimension>& dimensions, bool all_to_all) {
  std::vector<Algorithm> algorithms;
  for (const auto& dimension : dimensions) algorithms.push_back(natural_algorithm(dimension, all_to_all));
  return algorithms;
}

/// `entries`: of the list of dimensions, for how many dimensions each stands.
std::vector<Algorithm> read_algorithms(Section& section, std::string_view key,
                                       const std::vector<std::uint32_t>& entries,
                                       const std::vector<Algorithm>& fallback) {
  const bool has_torus = std::ranges::any_of(entries, [](std::uint32_t count) { return count > 1; });
  const std::string expected =
      fmt::format("a list of {}, one for each {}, or of a single one for the whole communicator, such as [oneRing]",
                  counted(entries.size(), "algorithm"), has_torus ? "entry of the dimensions" : "dimension");
  return section.get(key, fallback, [&](const Value& value, const std::string& path) {
    auto given = parse_algorithms(as_list(value, path, expected), path, expected, section.faults());
    const bool whole = given.size() == 1 && given[0].whole_communicator;
    if (whole || entries.empty()) return given;
    if (given.size() != entries.size())
      throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", value.description()), expected);
    std::vector<Algorithm> algorithms;
    for (std::size_t i = 0; i < entries.size(); ++i) algorithms.insert(algorithms.end(), entries[i], given[i]);
    return algorithms;
  });
}

std::uint32_t read_count(Section& section, std::string_view key, std::uint32_t fallback) {
  return section.get(key, fallback, [](const Value& value, const std::string& path) { return as_count(value, path); });
}

void read_collectives(Section section, const std::vector<std::uint32_t>& entries, Configuration& result) {
  using collective::Optimization;
  auto& options = result.collectives;
  auto& chunks = options.chunks;
  const auto natural = natural_algorithms(result.dimensions, false);
  options.all_reduce = read_algorithms(section, "all-reduce", entries, natural);
  options.all_gather = read_algorithms(section, "all-gather", entries, natural);
  options.reduce_scatter = read_algorithms(section, "reduce-scatter", entries, natural);
  options.all_to_all = read_algorithms(section, "all-to-all", entries, natural_algorithms(result.dimensions, true));
  options.broadcast = read_algorithms(section, "broadcast", entries, {});
  options.reduce = read_algorithms(section, "reduce", entries, {});
  chunks.optimization =
      section.choose("optimization", chunks.optimization,
                     {{"localBWAware", Optimization::local_bw_aware}, {"baseline", Optimization::baseline}});
  chunks.dimension_order = section.choose("dimension-order", chunks.dimension_order, dimension_orders());
  chunks.chunk_order = section.choose("chunk-order", chunks.chunk_order, chunk_orders());
  chunks.overlap_latency = section.get("overlap-latency", chunks.overlap_latency, as_bool);
  chunks.splits = read_count(section, "chunks", chunks.splits);
  chunks.active_chunks = read_count(section, "active-chunks", chunks.active_chunks);
  chunks.queues = read_count(section, "queues", chunks.queues);
  options.endpoint_delay =
      section.get("endpoint-delay", options.endpoint_delay, [&](const Value& value, const std::string& path) {
        return duration_from_ns(as_nanoseconds(value, path), result.executor.network.rules.rounding);
      });
  Section custom = section.section("custom");
  for (const collective::Kind kind : custom_kinds()) read_custom(custom, collective::name(kind), kind, as_path, result);
  Section nodes = custom.section("nodes");
  read_custom_nodes(nodes, as_path, result);
  custom.refuse_unknown();
  section.refuse_unknown();
}

/// A number, or one for each precision.
void read_peak(Section& section, Configuration& result) {
  const Value* const value = section.find("peak");
  if (value == nullptr || value->kind != Value::Kind::mapping || value->entries.empty()) {
    result.executor.compute.peak_flops = section.get("peak", 0.0, as_flops);
    return;
  }
  Section peak = section.section("peak");
  for (const auto& [word, precision] : precisions())
    if (peak.find(word) != nullptr) result.peaks[precision] = peak.get(word, 0.0, as_flops);
  peak.refuse_unknown();
}

/// The levels of memory that have a ceiling of their own in the roofline.
void read_levels(Section& section, compute::Options& compute) {
  const auto read = [&](std::string_view name, std::string_view amount, std::string_view expected, auto& level,
                        auto& found, auto parse) {
    Section keys = section.section(name);
    if (!keys.present()) return;
    found = keys.require(amount, expected, found, parse);
    level.bandwidth = keys.require("bandwidth", "such as '500 GB/s'", level.bandwidth, as_bandwidth);
    level.latency_ns = keys.get("latency", level.latency_ns, as_nanoseconds);
    keys.refuse_unknown();
    if (!compute.roofline)
      section.faults().add(Error(ErrorCode::bad_input, section.place(name),
                                 "found without the roofline, which alone uses it",
                                 "system.compute.roofline: true with it"));
  };
  read("cache", "size", "such as '50 MiB'", compute.cache, compute.cache.size, as_bytes);
  if (const auto& cache = compute.cache; cache.size > Bytes(0) && compute.local_memory.bytes_per_ns() > 0 &&
                                         cache.bandwidth.bytes_per_ns() <= compute.local_memory.bytes_per_ns())
    section.faults().add(Error(ErrorCode::bad_input, section.place("cache"),
                               fmt::format("found {} GB/s, no more than the {} GB/s of the local memory",
                                           cache.bandwidth.bytes_per_ns(), compute.local_memory.bytes_per_ns()),
                               "a cache that is faster"));
  read("expanded-memory", "share", "of the bytes that a node moves, such as 0.25", compute.expanded,
       compute.expanded.share, as_share);
}

void read_compute(Section section, Configuration& result) {
  auto& compute = result.executor.compute;
  compute.roofline = section.get("roofline", compute.roofline, as_bool);
  read_peak(section, result);
  result.executor.compute_streams = read_count(section, "streams", result.executor.compute_streams);
  Section memory = section.section("local-memory");
  compute.local_memory = memory.get("bandwidth", compute.local_memory, as_bandwidth);
  compute.local_memory_latency_ns = memory.get("latency", compute.local_memory_latency_ns, as_nanoseconds);
  result.executor.local_memory_size =
      memory.get("size", result.executor.local_memory_size, [](const Value& value, const std::string& key) {
        const Bytes size = as_bytes(value, key);
        if (size == Bytes(0))
          throw Error(ErrorCode::bad_input, value.place(key), "found 0", "1 B or more",
                      "Leave it out for a memory that holds anything.");
        return size;
      });
  result.collectives.local_memory = compute.local_memory;
  if (compute.roofline) {
    section.need("peak", "the peak compute rate, such as '989 TFLOPS', because the roofline is on");
    memory.need("bandwidth", "the local memory's bandwidth, such as '3350 GB/s', because the roofline is on");
  }
  memory.refuse_unknown();
  read_levels(section, compute);
  section.refuse_unknown();
}

/// Of `perturbation`, or of `system.compute`, where it was first.
void read_noise(Section& perturbation, Section& compute, Configuration& result) {
  for (const char* key : {"noise", "noise-seed"})
    if (const Value* const value = perturbation.find(key); value != nullptr && compute.find(key) != nullptr)
      perturbation.faults().add(Error(ErrorCode::bad_input, value->place(perturbation.path(key)),
                                      fmt::format("{} is given too", compute.path(key)), "one of them"));
  for (Section* const section : {&compute, &perturbation}) {
    result.executor.compute_noise = section->get("noise", result.executor.compute_noise, as_share);
    result.executor.noise_seed =
        section->get("noise-seed", result.executor.noise_seed,
                     [](const Value& value, const std::string& key) { return as_count(value, key, 0); });
  }
}

void read_communication(Section section, Configuration& result) {
  result.executor.comm_streams = read_count(section, "streams", result.executor.comm_streams);
  result.executor.comm_order = section.choose("order", result.executor.comm_order, comm_orders());
  result.collectives.collectives_at_a_time = result.executor.comm_streams;
  result.executor.rendezvous = section.get("rendezvous", false, as_bool);
  result.collectives.rendezvous = result.executor.rendezvous;
  section.refuse_unknown();
}

/// "7" or "0-31".
NpuRange parse_range(const Value& value, const std::string& key, std::uint32_t num_npus) {
  const std::string expected = fmt::format("an NPU or a range such as 0-31, below the number of NPUs, {}", num_npus);
  return parse_npu_range(as_text(value, key, expected), num_npus, value.place(key));
}

std::vector<TraceFiles> read_trace_map(const Value& value, const std::string& key, std::uint32_t num_npus,
                                       Faults& faults) {
  std::vector<TraceFiles> traces;
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    Section item(&value.items[i], fmt::format("{}.{}", key, i), value.items[i], faults);
    TraceFiles files;
    const NpuRange range =
        item.require("npus", "an NPU or a range such as 0-31", NpuRange{next, next},
                     [&](const Value& v, const std::string& path) { return parse_range(v, path, num_npus); });
    files.first = range.first;
    files.last = range.last;
    files.pattern =
        item.require("file", "the name of a trace, in which {npu} stands for the NPU", std::filesystem::path(), as_path)
            .string();
    item.refuse_unknown();
    if (files.first != next)
      faults.add(Error(ErrorCode::bad_input, value.items[i].place(item.path("npus")),
                       files.first < next ? fmt::format("NPU {} has a trace already", files.first)
                                          : fmt::format("no trace for NPU {}", next),
                       "ranges in ascending order that hold every NPU once"));
    next = files.last + 1;
    traces.push_back(std::move(files));
  }
  if (next < num_npus)
    faults.add(Error(ErrorCode::bad_input, value.place(key), fmt::format("no trace for NPU {}", next),
                     fmt::format("ranges that hold every one of the {} NPUs once", num_npus)));
  return traces;
}

std::vector<TraceFiles> read_traces(Section& workload, std::uint32_t num_npus, bool system_only) {
  Faults& faults = workload.faults();
  const Value* const value = system_only ? workload.find("traces") : workload.need("traces", traces_example);
  const std::string key = workload.path("traces");
  if (value == nullptr || num_npus == 0) return {};
  std::vector<TraceFiles> traces;
  faults.attempt([&] {
    if (value->kind == Value::Kind::scalar) {
      traces = {traces_of_prefix(as_path(*value, key).string(), num_npus)};
    } else if (value->kind == Value::Kind::mapping) {
      Section all(value, key, *value, faults);
      const auto file =
          all.require("all", "the name of a trace that all NPUs execute", std::filesystem::path(), as_path);
      all.refuse_unknown();
      traces = {{0, num_npus - 1, file.string()}};
    } else {
      as_list(*value, key, traces_example);
      traces = read_trace_map(*value, key, num_npus, faults);
    }
  });
  return traces;
}

void read_workload(Section section, Configuration& result, bool system_only) {
  auto& workload = result.workload;
  if (section.find("model") != nullptr || section.find("parallel") != nullptr) {
    workload.generated = read_description(section);
    for (const char* key : {"traces", "groups"})
      if (const Value* const value = section.find(key))
        section.faults().add(Error(ErrorCode::bad_input, value->place(section.path(key)),
                                   "a model, which is generated, and traces are given both", "one of them"));
  } else {
    workload.traces = read_traces(section, count_npus(result.dimensions), system_only);
  }
  if (const Value* const groups = section.find("groups"))
    section.faults().attempt([&] {
      workload.groups = as_path(*groups, section.path("groups"));
      if (!system_only)
        result.inputs.emplace_back("groups.json", read_text(*workload.groups, groups->place(section.path("groups"))));
    });
  workload.dependencies = section.choose("dependencies", workload.dependencies, dependency_policies());
  workload.streams = section.choose("streams", workload.streams, stream_policies());
  result.executor.replay_only = section.get("replay-only", result.executor.replay_only, as_bool);
  result.executor.iterations =
      section.get("iterations", result.executor.iterations,
                  [](const Value& value, const std::string& key) { return as_count(value, key); });
  section.refuse_unknown();
}

void read_run(Section section, Configuration& result) {
  auto& run = result.run;
  run.output = section.get("output", run.output, as_path);
  run.force = section.get("force", run.force, as_bool);
  run.fold = section.get("fold", run.fold, as_bool);
  run.partition = section.get(
      "partition", run.partition, [&run](const Value& value, const std::string& key) -> partition::PartitionOptions {
        run.partition_named_by = value.place(key);
        if (value.kind == Value::Kind::scalar && !value.quoted)
          if (const partition::PartitionOptions named(value.text, value.place(key)); !named.is_rank_map()) return named;
        return partition::PartitionOptions::rank_map(as_path(value, key));
      });
  result.executor.timeline = section.get("timeline", result.executor.timeline, as_bool);
  result.executor.record_iterations =
      section.get("record-iterations", result.executor.record_iterations,
                  [](const Value& value, const std::string& key) { return as_count(value, key, 0); });
  run.memory = section.choose("memory", run.memory, excess_policies());
  run.progress = section.choose("progress", run.progress, progress_kinds());
  run.progress_interval_s =
      section.get("progress-interval", run.progress_interval_s, [](const Value& value, const std::string& key) {
        const double seconds = as_seconds(value, key);
        if (!(seconds > 0))
          throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()),
                      "more than 0 s");
        return seconds;
      });
  run.quiet = section.get("quiet", run.quiet, as_bool);
  run.print_npus = section.get("print-npus", run.print_npus, as_bool);
  run.max_walltime_s = section.get("max-walltime", run.max_walltime_s, as_seconds);
  run.watchdog_s = section.get("watchdog", run.watchdog_s, as_seconds);
  section.refuse_unknown();
}

}  // namespace

Configuration read_own(const Value& root, bool system_only, Faults& faults) {
  Configuration result;
  Section top(&root, "", root, faults);
  Section system = top.section("system");
  result.follow(
      system.choose("rules", result.rule_set, {{"physical", RuleSet::physical}, {"astra-sim", RuleSet::astra_sim}}));
  Section network = system.section("network");
  const auto entries = read_dimensions(network, result.dimensions);
  auto& options = result.executor.network;
  options.model = network.choose("model", options.model, network_models());
  options.switching = network.choose("switching", options.switching, network_switchings());
  options.packet = network.get("packet-size", options.packet, [](const Value& value, const std::string& key) {
    return parse_bytes(as_text(value, key, "a size such as '4096 B', or '0 B': messages are not cut"), value.place(key),
                       "4096 B");
  });
  network.refuse_unknown();
  read_collectives(system.section("collectives"), entries, result);
  Section compute = system.section("compute");
  Section perturbation = top.section("perturbation");
  read_noise(perturbation, compute, result);
  read_compute(std::move(compute), result);
  read_communication(system.section("communication"), result);
  read_remote_memory(system.section("remote-memory"), result);
  system.refuse_unknown();
  read_perturbation(std::move(perturbation), result);
  read_workload(top.section("workload"), result, system_only);
  if (const auto peak = result.peaks.find(result.precision()); peak != result.peaks.end())
    result.executor.compute.peak_flops = peak->second;
  if (result.executor.replay_only && (!result.perturbation.empty() || result.executor.compute_noise > 0))
    result.warnings.emplace_back(
        "perturbation has no effect with workload.replay-only: every node takes what was recorded");
  read_run(top.section("run"), result);
  top.refuse_unknown();
  return result;
}

}  // namespace orrery::config
