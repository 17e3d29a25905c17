#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "formats.hpp"
#include "orrery/base/text.hpp"
#include "orrery/memory/options.hpp"
#include "section.hpp"
#include "suggestion.hpp"

namespace orrery::config {
namespace {

using collective::Algorithm;
using topology::Dimension;
using topology::Shape;

/// Reads one file, keeps its text among the inputs, and gives its top mapping to `read`.
template <class Parse, class Read>
void with_file(const std::filesystem::path& path, const std::string& input_name, Configuration& result, Faults& faults,
               Parse parse, Read read) {
  faults.attempt([&] {
    const auto origin = std::make_shared<const Origin>(Origin{path.string(), path.parent_path()});
    std::string text = read_text(path);
    const Value root = parse(text, origin, faults);
    result.inputs.emplace_back(input_name, std::move(text));
    Section section(&root, "", root, faults);
    if (root.kind == Value::Kind::null)
      faults.add(
          Error(ErrorCode::bad_input, {.file = path.string()}, "the file is empty", "a mapping of keys to values"));
    else
      read(section);
  });
}

/// ASTRA-sim writes a switch as 0 or 1.
bool as_switch(const Value& value, const std::string& key) {
  if (value.kind == Value::Kind::scalar && !value.quoted && (value.text == "true" || value.text == "false"))
    return value.text == "true";
  return as_count(value, key, 0, 1) == 1;
}

double as_positive(const Value& value, const std::string& key) {
  const double number = as_number(value, key);
  if (!(number > 0))
    throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()), "more than 0");
  return number;
}

double as_latency(const Value& value, const std::string& key) {
  const double ns = as_number(value, key);
  if (ns > 1e12) throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {} ns", ns), "at most 1000 s");
  return ns;
}

std::uint32_t as_positive_count(const Value& value, const std::string& key) { return as_count(value, key); }

/// One warning for all entries that were not asked for; a near miss of a known key is pointed out.
void warn_unknown(const Section& section, std::string_view file, const std::vector<std::string>& also,
                  Configuration& result) {
  std::vector<std::string> names = also;
  for (const auto* entry : section.unknown()) {
    const auto near = nearest(entry->key, section.known());
    names.push_back(near.empty() || entry->key.size() < 3 ? fmt::format("'{}'", entry->key)
                                                          : fmt::format("'{}' (did you mean '{}'?)", entry->key, near));
  }
  if (!names.empty())
    result.warnings.push_back(fmt::format("{}: ignored, without meaning here: {}", file, fmt::join(names, ", ")));
}

// ---- network.yml ----

constexpr double astra_sim_gigabyte_per_ns = 1073741824.0 / 1e9;

/// The values of a list, which must be as many as `count` unless that is 0; the fallback where one is faulty.
template <class T, class Parse>
std::vector<T> read_list(Section& section, std::string_view key, std::string_view expected, std::size_t count,
                         T fallback, Parse parse) {
  std::vector<T> values;
  const Value* const list = section.need(key, expected);
  if (list == nullptr) return values;
  section.faults().attempt([&] {
    const auto& items = as_list(*list, section.path(key), expected);
    values.assign(items.size(), fallback);
    for (std::size_t d = 0; d < items.size(); ++d)
      section.faults().attempt([&] { values[d] = parse(items[d], fmt::format("{}[{}]", key, d)); });
    if (count > 0 && items.size() != count)
      throw Error(ErrorCode::bad_input, list->place(section.path(key)), fmt::format("found a list of {}", items.size()),
                  fmt::format("a list of {}, one entry for each dimension of 'topology'", count));
  });
  return values;
}

const std::vector<std::pair<std::string_view, Shape>>& astra_sim_shapes() {
  static const std::vector<std::pair<std::string_view, Shape>> words = {
      {"Ring", Shape::ring}, {"FullyConnected", Shape::fully_connected}, {"Switch", Shape::switched}};
  return words;
}

Shape as_astra_sim_shape(const Value& value, const std::string& key) {
  const auto& words = astra_sim_shapes();
  if (std::ranges::find(words, value.text, &std::pair<std::string_view, Shape>::first) == words.end() &&
      is_shape(value.text))
    throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()),
                "Ring, FullyConnected or Switch",
                fmt::format("ASTRA-sim's files have no {}, but CONFIG.yaml has.", value.text));
  return as_word(value, key, words);
}

/// The dimensions stay unknown if their number or a size is.
void read_network(Section& section, Configuration& result) {
  const auto shapes =
      read_list(section, "topology", "a list of Ring, FullyConnected or Switch", 0, Shape::ring, as_astra_sim_shape);
  const auto count = shapes.size();
  const auto sizes = read_list(section, "npus_count", "a list of whole numbers", count, 0U, as_positive_count);
  auto bandwidths = read_list(section, "bandwidth", "a list of numbers, GB/s of 2^30 bytes", count, 1.0, as_positive);
  auto latencies = read_list(section, "latency", "a list of numbers, ns", count, 0.0, as_latency);
  if (count == 0 || sizes.size() != count || std::ranges::find(sizes, 0U) != sizes.end()) return;
  bandwidths.resize(count, 1.0);
  latencies.resize(count, 0.0);
  for (std::size_t d = 0; d < count; ++d)
    result.dimensions.push_back({.shape = shapes[d],
                                 .size = sizes[d],
                                 .bandwidth = Bandwidth::from_bytes_per_ns(bandwidths[d] * astra_sim_gigabyte_per_ns),
                                 .latency_ns = latencies[d]});
}

// ---- system.json ----

/// As ASTRA-sim takes it: from the working directory.
std::filesystem::path as_working_path(const Value& value, const std::string& key) {
  return as_text(value, key, "the name of a file");
}

std::vector<Algorithm> read_algorithms(Section& section, std::string_view list_key, std::string_view custom_key,
                                       std::size_t num_dimensions) {
  const std::string key(list_key);
  std::vector<Algorithm> algorithms;
  const std::string expected =
      fmt::format("a list of {}, one for each dimension of the network", counted(num_dimensions, "algorithm"));
  const bool is_custom = section.find(custom_key) != nullptr;
  const Value* const value = is_custom ? section.find(list_key) : section.need(list_key, expected);
  if (value == nullptr) return algorithms;
  section.faults().attempt([&] {
    const auto& items = as_list(*value, key, expected);
    algorithms = parse_algorithms(items, key, expected, section.faults());
    const bool whole = algorithms.size() == 1 && algorithms[0].whole_communicator;
    if (num_dimensions > 0 && items.size() != num_dimensions && !whole)
      throw Error(ErrorCode::bad_input, value->place(key),
                  fmt::format("{} named, but 'topology' of the network has {}", items.size(), num_dimensions), expected,
                  "Name one algorithm for each dimension.");
  });
  return algorithms;
}

/// ASTRA-sim needs it and ends without a result where it is absent or 0.
std::uint32_t read_splits(Section& section) {
  constexpr std::string_view key = "preferred-dataset-splits";
  constexpr std::string_view expected = "the number of chunks of a collective, 1 or more";
  constexpr std::string_view hint = "Write \"preferred-dataset-splits\": 1 for collectives in one piece.";
  std::uint32_t splits = 1;
  section.faults().attempt([&] {
    const Value* const value = section.find(key);
    if (value == nullptr) throw Error(ErrorCode::bad_input, section.place(key), "the key is missing", expected, hint);
    splits = as_count(*value, std::string(key), 0);
    if (splits == 0) throw Error(ErrorCode::bad_input, value->place(key), "found 0", expected, hint);
  });
  return splits;
}

void read_collectives(Section& section, const AstraSimInputs& files, Configuration& result) {
  using collective::Optimization;
  auto& options = result.collectives;
  const std::size_t count = result.dimensions.size();
  const auto read = [&](std::string_view key, std::string_view custom_key, collective::Kind kind) {
    read_custom(section, custom_key, kind, as_working_path, result);
    return read_algorithms(section, key, custom_key, count);
  };
  options.all_reduce =
      read("all-reduce-implementation", "all-reduce-implementation-custom", collective::Kind::all_reduce);
  options.all_gather =
      read("all-gather-implementation", "all-gather-implementation-custom", collective::Kind::all_gather);
  options.reduce_scatter =
      read("reduce-scatter-implementation", "reduce-scatter-implementation-custom", collective::Kind::reduce_scatter);
  options.all_to_all =
      read("all-to-all-implementation", "all-to-all-implementation-custom", collective::Kind::all_to_all);
  if (const Value* const nodes = section.find("per-node-custom-implementation"))
    section.faults().attempt([&] {
      with_file(as_working_path(*nodes, "per-node-custom-implementation"), "per-node-custom.yml", result,
                section.faults(), parse_yaml, [&](Section& file) { read_custom_nodes(file, as_working_path, result); });
    });
  options.chunks.optimization =
      section.choose("collective-optimization", Optimization::baseline,
                     {{"localBWAware", Optimization::local_bw_aware}, {"baseline", Optimization::baseline}});
  options.chunks.active_chunks = section.get("active-chunks-per-dimension", 1U, as_positive_count);
  options.chunks.queues = files.num_queues_per_dim;
  options.rendezvous = files.rendezvous;
  options.chunks.splits = read_splits(section);
  // ASTRA-sim scales what is written only, and keeps whole ns.
  options.endpoint_delay =
      section.get("endpoint-delay", Time::from_ns(10), [&](const Value& value, const std::string& key) {
        const double scaled = std::trunc(as_number(value, key)) * files.injection_scale;
        if (scaled > 1e12)
          throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {} ns", scaled), "at most 1000 s");
        return duration_from_ns(scaled, Rounding::down_to_ns);
      });
}

void read_compute(Section& section, Configuration& result) {
  auto& compute = result.executor.compute;
  compute.roofline = section.get("roofline-enabled", false, as_switch);
  compute.peak_flops = section.get("peak-perf", 0.0, as_positive) * 1e12;
  compute.local_memory = Bandwidth::from_bytes_per_ns(section.get("local-mem-bw", 0.0, as_positive));
  result.collectives.local_memory = compute.local_memory;
  result.executor.replay_only = section.get("replay-only", false, as_switch);
  if (!compute.roofline) return;
  section.need("peak-perf", "a number of TFLOPS, because 'roofline-enabled' is 1");
  section.need("local-mem-bw", "a number of GB/s, because 'roofline-enabled' is 1");
}

/// What ASTRA-sim reads and Orrery has no use for: wrong values are faults, values other than the usual are said.
std::vector<std::string> read_meaningless(Section& section) {
  std::vector<std::string> said;
  section.choose("scheduling-policy", 0, {{"LIFO", 0}, {"FIFO", 0}, {"EXPLICIT", 0}});
  section.get("trace-enabled", false, as_switch);
  if (section.get("boost-mode", false, as_switch)) said.emplace_back("'boost-mode'");
  section.get("track-local-mem", false, as_switch);  // results have it anyway
  section.get("local-mem-trace-filename", std::string(),
              [](const Value& value, const std::string& key) { return as_text(value, key, "the name of a file"); });
  for (const std::string_view key : {"local-reduction-delay", "L", "o", "g", "G"}) {
    if (section.find(key) == nullptr) continue;
    section.get(key, 0.0, [](const Value& v, const std::string& path) { return as_number(v, path); });
    said.push_back(fmt::format("'{}'", key));
  }
  for (const std::string_view key : {"intra-dimension-scheduling", "inter-dimension-scheduling"})
    if (section.find(key) != nullptr) said.push_back(fmt::format("'{}'", key));
  return said;
}

/// What would change results in a way that is not modelled.
void refuse_unsupported(Section& section) {
  if (const Value* const bus = section.find("model-shared-bus"))
    section.faults().attempt([&] {
      if (as_switch(*bus, "model-shared-bus"))
        throw Error(ErrorCode::bad_input, bus->place("model-shared-bus"),
                    "the shared bus between NPU and memory is not modelled", "0",
                    "Set it to 0; L, o, g and G have no effect then.");
    });
  for (const auto* entry : section.unknown())
    if (entry->key.find("-implementation-") != std::string::npos || entry->key.ends_with("-custom-implementation"))
      section.faults().add(
          Error(ErrorCode::bad_input, entry->value.place(entry->key),
                "collective algorithms from files are not given by this key",
                "'...-implementation-custom' of all-reduce, all-gather, reduce-scatter, all-to-all, or "
                "'per-node-custom-implementation'"));
}

void read_system(Section& section, const AstraSimInputs& files, Configuration& result) {
  read_collectives(section, files, result);
  read_compute(section, result);
  result.executor.rendezvous = files.rendezvous;
  const auto said = read_meaningless(section);
  refuse_unsupported(section);
  warn_unknown(section, files.system.string(), said, result);
}

// ---- remote_memory.json ----

/// Keys of Orrery's own, in the manner of the others.
void read_hierarchy(Section& section, memory::HierarchyOptions& hierarchy) {
  const auto bandwidth = [&](std::string_view key) {
    return Bandwidth::from_bytes_per_ns(section.require(key, "a number of GB/s", 1.0, as_positive));
  };
  hierarchy.groups = section.require("num-memory-groups", "a whole number", 0U, as_positive_count);
  hierarchy.switches =
      section.require("num-out-node-switches", "a whole number that divides the groups", 1U, as_positive_count);
  hierarchy.link = bandwidth("out-node-link-bw");
  hierarchy.link_latency_ns = section.get("out-node-link-latency", 0.0, as_latency);
  hierarchy.fabric = bandwidth("in-node-fabric-bw");
  hierarchy.fabric_latency_ns = section.get("in-node-fabric-latency", 0.0, as_latency);
  hierarchy.chunk = Bytes(section.require("chunk-size", "a whole number of bytes", 1U, as_positive_count));
  require_divisor(section, "num-out-node-switches", hierarchy.switches, hierarchy.groups, "memory groups");
}

void read_memory(Section& section, const AstraSimInputs& files, Configuration& result) {
  using memory::RemoteMemoryKind;
  auto& memory = result.remote_memory;
  section.need("memory-type",
               "NO_MEMORY_EXPANSION, PER_NPU_MEMORY_EXPANSION, PER_NODE_MEMORY_EXPANSION, MEMORY_POOL or "
               "HIERARCHICAL_POOL");
  memory.kind = section.choose("memory-type", RemoteMemoryKind::none,
                               {{"NO_MEMORY_EXPANSION", RemoteMemoryKind::none},
                                {"PER_NPU_MEMORY_EXPANSION", RemoteMemoryKind::per_npu},
                                {"PER_NODE_MEMORY_EXPANSION", RemoteMemoryKind::per_node},
                                {"MEMORY_POOL", RemoteMemoryKind::pool},
                                {"HIERARCHICAL_POOL", RemoteMemoryKind::hierarchical_pool}});
  for (const std::string_view key : {"remote-mem-latency", "remote-mem-bw", "num-nodes", "num-npus-per-node"})
    section.find(key);
  if (memory.kind != RemoteMemoryKind::none) {
    memory.latency_ns = section.require("remote-mem-latency", "a number of ns", 0.0, as_latency);
    memory.bandwidth =
        Bandwidth::from_bytes_per_ns(section.require("remote-mem-bw", "a number of GB/s", 1.0, as_positive));
  }
  if (memory.kind == RemoteMemoryKind::per_node || memory.kind == RemoteMemoryKind::hierarchical_pool) {
    memory.npus_per_node =
        section.require("num-npus-per-node", "a whole number that divides the number of NPUs", 1U, as_positive_count);
    const std::uint32_t nodes = section.get("num-nodes", 0U, as_positive_count);
    const std::uint32_t npus = count_npus(result.dimensions);
    if (nodes > 0 && std::uint64_t{nodes} * memory.npus_per_node < npus)
      section.faults().add(Error(ErrorCode::bad_input, section.find("num-nodes")->place("num-nodes"),
                                 fmt::format("{} of {} hold fewer than the {} of the network", counted(nodes, "node"),
                                             counted(memory.npus_per_node, "NPU"), counted(npus, "NPU")),
                                 "nodes for all NPUs"));
    require_divisor(section, "num-npus-per-node", memory.npus_per_node, npus, "NPUs");
  }
  if (memory.kind == RemoteMemoryKind::hierarchical_pool) read_hierarchy(section, memory.hierarchy);
  warn_unknown(section, files.remote_memory.string(), {}, result);
}

void warn_flags(const AstraSimInputs& files, Configuration& result) {
  std::vector<std::string> names = files.ignored;
  if (files.comm_scale != 1) names.emplace_back("comm-scale");
  if (files.compute_scale != 1) names.emplace_back("compute-scale");
  for (auto& name : names) name = "--" + name;
  if (!names.empty())
    result.warnings.push_back(fmt::format("without effect, as in ASTRA-sim 2: {}", fmt::join(names, ", ")));
}

}  // namespace

Configuration read_astra_sim(const AstraSimInputs& files, bool system_only, Faults& faults) {
  Configuration result;
  result.follow(RuleSet::astra_sim);
  with_file(files.network, "network.yml", result, faults, parse_yaml, [&](Section& section) {
    read_network(section, result);
    warn_unknown(section, files.network.string(), {}, result);
  });
  with_file(files.system, "system.json", result, faults, parse_json,
            [&](Section& section) { read_system(section, files, result); });
  if (!files.remote_memory.empty())
    with_file(files.remote_memory, "remote_memory.json", result, faults, parse_json,
              [&](Section& section) { read_memory(section, files, result); });
  if (const auto npus = count_npus(result.dimensions); !files.workload.empty() && npus > 0)
    result.workload.traces = {traces_of_prefix(files.workload, npus)};
  if (!files.groups.empty()) {
    result.workload.groups = files.groups;
    if (!system_only) faults.attempt([&] { result.inputs.emplace_back("comm_group.json", read_text(files.groups)); });
  }
  warn_flags(files, result);
  return result;
}

}  // namespace orrery::config
