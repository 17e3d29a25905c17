#include <algorithm>
#include <cmath>

#include "astra_sim.hpp"
#include "keys/keys.hpp"

namespace orrery::config {
namespace {

using collective::Algorithm;
using collective::Kind;

using Algorithms = std::vector<Algorithm>;

/// Returns the name of a file as ASTRA-sim takes it: from the working directory.
std::filesystem::path as_working_path(const Value& value, const std::string& key) {
  return as_text(value, key, "the name of a file");
}

/// Returns how the algorithms of a kind are read: one for each dimension of the network, or a single one for all.
template <Algorithms collective::Options::*member>
constexpr Handling<Configuration> algorithms_of() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
    const std::size_t num_dimensions = target.dimensions.size();
    const std::string expected =
        fmt::format("a list of {}, one for each dimension of the network", counted(num_dimensions, "algorithm"));
    const auto& items = as_list(value, path, expected);
    auto& algorithms = target.collectives.*member;
    algorithms = parse_algorithms(items, path, expected, reading.faults);
    const bool is_whole = algorithms.size() == 1 && algorithms[0].whole_communicator;
    if (num_dimensions == 0 || items.size() == num_dimensions || is_whole) return;
    // Only a trace with such a collective needs the list, which check::algorithms sees.
    algorithms.clear();
    const Error unused(ErrorCode::bad_input, value.place(path),
                       fmt::format("{} named, but 'topology' of the network has {}", items.size(), num_dimensions),
                       expected, "The list is left out: a trace with such a collective is refused.");
    reading.configuration.warnings.emplace_back(unused.what());
  }};
}

template <Kind kind>
constexpr Handling<Configuration> custom_files() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
    read_custom(value, path, kind, as_working_path, target, reading.faults);
  }};
}

/// Returns the row of the files that spell out a kind of collectives.
template <Kind kind>
consteval AstraSimRow<Configuration> custom(Text name, Text becomes) {
  return {name,
          becomes,
          "files that spell out the collective, as paths from the working directory",
          Default::none(),
          ValueInfo("list", "a list of PREFIX of Chakra traces, or of MSCCL XML", "-", "one for each size of groups"),
          custom_files<kind>()};
}

/// Returns the row of the algorithms of a kind of collectives.
template <Algorithms collective::Options::*member>
consteval AstraSimRow<Configuration> implementation(Text name, Text becomes) {
  return {name,
          becomes,
          "algorithm of each dimension; only a trace with such a collective needs it",
          Default::none(),
          ValueInfo("list", "a list of algorithms, one for each dimension of the network", "-",
                    "one for each dimension", algorithm_words),
          algorithms_of<member>()};
}

constexpr Handling<Configuration> files_of_each_node() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
    with_file(as_working_path(value, path), "per-node-custom.yml", reading, parse_yaml,
              [&](const Value& nodes) { read_custom_nodes(nodes, "", as_working_path, target, reading.faults); });
  }};
}

/// ASTRA-sim ends without a result where it is absent or 0.
constexpr Handling<Configuration> splits() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
    const std::uint32_t splits = as_count(value, path, 0);
    if (splits == 0)
      throw Error(ErrorCode::bad_input, value.place(path), "found 0", "the number of chunks of a collective, 1 or more",
                  "Write \"preferred-dataset-splits\": 1 for collectives in one piece.");
    target.collectives.chunks.splits = splits;
  }};
}

/// Returns how the endpoint delay is read: ASTRA-sim scales what is written only, and keeps whole ns.
constexpr Handling<Configuration> scaled_delay() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
    const double scaled = std::trunc(as_number(value, path)) * reading.astra_sim->injection_scale;
    if (scaled > 1e12)
      throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {} ns", scaled), "at most 1000 s");
    target.collectives.endpoint_delay = duration_from_ns(scaled, Rounding::down_to_ns);
  }};
}

bool has_roofline_enabled(const Configuration& c, const Reading&) { return c.execution.compute.model->uses_operations; }

constexpr Handling<Configuration> roofline() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
    const bool is_on = zero_or_one().read(value, path, reading);
    target.execution.compute.model = compute::ModelName(is_on ? "roofline" : "recorded");
  }};
}

constexpr auto peak_type = positive_number("TFLOPS");
constexpr Handling<Configuration> peak() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
    target.execution.compute.peak_flops = peak_type.read(value, path, reading) * 1e12;
  }};
}

/// Returns the handling of a key that would change results in a way that is not modelled.
constexpr Handling<Configuration> shared_bus() {
  return {[](const Value& value, const std::string& path, Configuration&, Reading& reading) {
    if (zero_or_one().read(value, path, reading))
      throw Error(ErrorCode::bad_input, value.place(path), "the shared bus between NPU and memory is not modelled", "0",
                  "Set it to 0; L, o, g and G have no effect then.");
  }};
}

/// The kind of values that are not looked at.
constinit const ValueKind<bool> anything_kind = kind_of<bool>(
    [](const Limits&) {
      return TypeInfo{"any", "a value", "-", "any"};
    },
    [](const Limits&, const Value&, const std::string&, const Reading&) { return true; },
    [](const Limits&, bool) { return std::nullopt; });

const Words<int>& scheduling_policies() {
  static const Words<int> words = {
      {"LIFO", 0, "last in, first out"}, {"FIFO", 1, "first in, first out"}, {"EXPLICIT", 2, "an explicit order"}};
  return words;
}

constexpr auto policy = word<scheduling_policies>();
constexpr auto switch_type = zero_or_one();
constexpr auto trace_file = any_text("the name of a file");
constexpr auto not_negative = number("0 or more");
constexpr Type anything(anything_kind);
constexpr auto never = [](const auto&) { return false; };
constexpr auto always = [](const auto&) { return true; };

/// Returns the row of a key that ASTRA-sim reads and Orrery has no use for: wrong values are faults. The warning names
/// those that `is_named` is true of.
template <const auto& type, auto is_named>
consteval AstraSimRow<Configuration> without_effect(Text name, Text help) {
  return {name,
          "-",
          help,
          Default::none(),
          ValueInfo(type),
          Handling<Configuration>{[](const Value& value, const std::string& path, Configuration&, Reading& reading) {
            if (is_named(type.read(value, path, reading))) reading.without_effect.push_back(path);
          }}};
}

constexpr AstraSimRow<Configuration> system_json_rows[] = {
    custom<Kind::all_reduce>("all-reduce-implementation-custom", "system.collectives.custom.all-reduce"),
    implementation<&collective::Options::all_reduce>("all-reduce-implementation", "system.collectives.all-reduce"),
    custom<Kind::all_gather>("all-gather-implementation-custom", "system.collectives.custom.all-gather"),
    implementation<&collective::Options::all_gather>("all-gather-implementation", "system.collectives.all-gather"),
    custom<Kind::reduce_scatter>("reduce-scatter-implementation-custom", "system.collectives.custom.reduce-scatter"),
    implementation<&collective::Options::reduce_scatter>("reduce-scatter-implementation",
                                                         "system.collectives.reduce-scatter"),
    custom<Kind::all_to_all>("all-to-all-implementation-custom", "system.collectives.custom.all-to-all"),
    implementation<&collective::Options::all_to_all>("all-to-all-implementation", "system.collectives.all-to-all"),
    {"per-node-custom-implementation", "system.collectives.custom.nodes",
     "YAML file of `ID: PREFIX`, from the working directory", Default::none(), file(), files_of_each_node()},
    {"collective-optimization", "system.collectives.optimization", "phases of an all-reduce over several dimensions",
     Default::value("baseline"), word<collective_optimizations>(),
     [](auto& c) { return &c.collectives.chunks.optimization; }},
    {"preferred-dataset-splits", "system.collectives.chunks", "pieces into which a collective is cut",
     Default::needed(), ValueInfo("whole number", "the number of chunks of a collective, 1 or more", "-", "1 or more"),
     splits(), hint("Write \"preferred-dataset-splits\": 1 for collectives in one piece.")},
    {"active-chunks-per-dimension", "system.collectives.active-chunks",
     "chunks that are in service at a time in each dimension", Default::value("1"), count(),
     [](auto& c) { return &c.collectives.chunks.active_chunks; }},
    {"endpoint-delay", "system.collectives.endpoint-delay",
     "time between the arrival of a message and the next send; it is multiplied by `--injection-scale` and cut to "
     "whole ns",
     Default::described("10, not scaled"), plain_nanoseconds(), scaled_delay()},
    {"roofline-enabled", "system.compute.roofline", "compute the durations of compute nodes by the roofline",
     Default::value("0"), zero_or_one(), roofline()},
    {"peak-perf", "system.compute.peak", "peak compute rate", Default::none(), peak_type, peak(),
     needed_if(has_roofline_enabled, "'roofline-enabled' is 1")},
    {"local-mem-bw", "system.compute.local-memory.bandwidth", "bandwidth of the local memory, in GB of 10^9 bytes",
     Default::none(), plain_bandwidth(), [](auto& c) { return &c.execution.compute.local_memory; },
     needed_if(has_roofline_enabled, "'roofline-enabled' is 1")},
    {"replay-only", "workload.replay-only", "give every node its recorded duration", Default::value("0"), zero_or_one(),
     [](auto& c) { return &c.execution.replay_only; }},
    without_effect<policy, never>("scheduling-policy", "accepted, without effect"),
    without_effect<switch_type, never>("trace-enabled", "accepted, without effect"),
    without_effect<switch_type, [](bool is_on) { return is_on; }>(
        "boost-mode", "accepted, without effect; a warning names it if it is 1"),
    without_effect<switch_type, never>("track-local-mem", "accepted, without effect: results have the peaks anyway"),
    without_effect<trace_file, never>("local-mem-trace-filename", "accepted, without effect"),
    without_effect<not_negative, always>("local-reduction-delay", "accepted, without effect; a warning names it"),
    without_effect<not_negative, always>("L", "accepted, without effect; a warning names it"),
    without_effect<not_negative, always>("o", "accepted, without effect; a warning names it"),
    without_effect<not_negative, always>("g", "accepted, without effect; a warning names it"),
    without_effect<not_negative, always>("G", "accepted, without effect; a warning names it"),
    without_effect<anything, always>("intra-dimension-scheduling", "accepted, without effect; a warning names it"),
    without_effect<anything, always>("inter-dimension-scheduling", "accepted, without effect; a warning names it"),
    {"model-shared-bus", "-", "refused if it is 1: the shared bus is not modelled", Default::none(), zero_or_one(),
     shared_bus()},
};

void refuse_other_implementations(const Section& section, Faults& faults) {
  for (const auto* entry : section.unknown())
    if (entry->key.find("-implementation-") != std::string::npos || entry->key.ends_with("-custom-implementation"))
      faults.add(Error(ErrorCode::bad_input, entry->value.place(entry->key),
                       "collective algorithms from files are not given by this key",
                       "'...-implementation-custom' of all-reduce, all-gather, reduce-scatter, all-to-all, or "
                       "'per-node-custom-implementation'"));
}

}  // namespace

const Keys<Configuration>& system_json_keys() {
  static const Keys<Configuration> all("system.json", system_json_rows);
  return all;
}

void read_system_json(const AstraSimInputs& files, Reading& reading) {
  with_file(files.system, "system.json", reading, parse_astra_sim_system, [&](const Value& root) {
    Configuration& result = reading.configuration;
    Sections sections(Section(&root, "", root, reading.faults));
    read_keys(system_json_keys(), sections, result, reading);
    result.collectives.chunks.queues = files.num_queues_per_dim;
    result.execution.rendezvous = files.rendezvous;
    refuse_other_implementations(sections.at(""), reading.faults);
    warn_without_effect(sections.at(""), files.system, reading);
  });
}

}  // namespace orrery::config
