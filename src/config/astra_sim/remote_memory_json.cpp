#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>

#include "astra_sim.hpp"
#include "keys/keys.hpp"

namespace orrery::config {
namespace {

using memory::RemoteMemoryKind;

const Words<RemoteMemoryKind>& memory_types() {
  static const Words<RemoteMemoryKind> words = {
      {"NO_MEMORY_EXPANSION", RemoteMemoryKind("none"), "no remote memory"},
      {"PER_NPU_MEMORY_EXPANSION", RemoteMemoryKind("per-npu"), "each NPU has one"},
      {"PER_NODE_MEMORY_EXPANSION", RemoteMemoryKind("per-node"), "the NPUs of a node share one"},
      {"MEMORY_POOL", RemoteMemoryKind("pool"), "all NPUs share one"},
      {"HIERARCHICAL_POOL", RemoteMemoryKind("hierarchical-pool"),
       "memory groups behind out-node switches, which ASTRA-sim 2 does not know"}};
  return words;
}

bool has_any_memory(const Configuration& c) { return c.remote_memory.kind->has_memory; }
bool is_pool_of_groups(const Configuration& c) { return c.remote_memory.kind->has_hierarchy; }
bool has_nodes_of_npus(const Configuration& c) { return c.remote_memory.kind->has_nodes; }

constexpr Handling<Configuration> checked_nodes() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
    const std::uint32_t nodes = as_count(value, path);
    const std::uint32_t each = std::max(target.remote_memory.npus_per_node, 1U);
    const std::uint32_t npus = count_npus(target.dimensions);
    if (std::uint64_t{nodes} * each < npus)
      throw Error(ErrorCode::bad_input, value.place(path),
                  fmt::format("{} of {} hold fewer than the {} of the network", counted(nodes, "node"),
                              counted(each, "NPU"), counted(npus, "NPU")),
                  "nodes for all NPUs");
  }};
}

/// Drops the fractions of latency and bandwidth, as ASTRA-sim does. A bandwidth below 1 GB/s, with which ASTRA-sim
/// divides by zero, stays.
void cut_fractions(memory::RemoteMemoryOptions& memory) {
  if (memory.kind->has_hierarchy) return;
  memory.latency_ns = std::floor(memory.latency_ns);
  const double bandwidth = memory.bandwidth.bytes_per_ns();
  if (bandwidth >= 1) memory.bandwidth = Bandwidth::from_bytes_per_ns(std::floor(bandwidth));
}

constexpr Handling<Configuration> chunk_size() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
    target.remote_memory.hierarchy.chunk = Bytes(as_count(value, path));
  }};
}

constexpr AstraSimRow<Configuration> remote_memory_json_rows[] = {
    {"memory-type", "system.remote-memory.kind", "kind of remote memory", Default::needed(), word<memory_types>(),
     [](auto& c) { return &c.remote_memory.kind; }},
    {"remote-mem-latency", "system.remote-memory.latency", "latency of an access", Default::needed(),
     plain_nanoseconds(), [](auto& c) { return &c.remote_memory.latency_ns; },
     only_if(has_any_memory, "a memory-type but NO_MEMORY_EXPANSION"), accepted_otherwise()},
    {"remote-mem-bw", "system.remote-memory.bandwidth", "bandwidth of one memory", Default::needed(), plain_bandwidth(),
     [](auto& c) { return &c.remote_memory.bandwidth; },
     only_if(has_any_memory, "a memory-type but NO_MEMORY_EXPANSION"), accepted_otherwise()},
    {"num-npus-per-node", "system.remote-memory.npus-per-node", "NPUs of a node, a divisor of the number of NPUs",
     Default::needed(), count(), [](auto& c) { return &c.remote_memory.npus_per_node; },
     only_if(has_nodes_of_npus, "memory-type: PER_NODE_MEMORY_EXPANSION or HIERARCHICAL_POOL"), accepted_otherwise(),
     check([](const Configuration& c, const Place& place, const Reading&) {
       require_divisor(c.remote_memory.npus_per_node, count_npus(c.dimensions), "NPUs", place);
     })},
    {"num-nodes", "-", "number of nodes; a fault if they hold fewer NPUs than the network has", Default::none(),
     count(), checked_nodes(),
     only_if(has_nodes_of_npus, "memory-type: PER_NODE_MEMORY_EXPANSION or HIERARCHICAL_POOL"), accepted_otherwise()},

    // Keys of Orrery's own, in the manner of the others.
    {"num-memory-groups", "system.remote-memory.groups", "memory groups", Default::needed(), count(),
     [](auto& c) { return &c.remote_memory.hierarchy.groups; },
     only_if(is_pool_of_groups, "memory-type: HIERARCHICAL_POOL")},
    {"num-out-node-switches", "system.remote-memory.switches", "out-node switches, a divisor of the groups",
     Default::needed(), count(), [](auto& c) { return &c.remote_memory.hierarchy.switches; },
     only_if(is_pool_of_groups, "memory-type: HIERARCHICAL_POOL"),
     check([](const Configuration& c, const Place& place, const Reading&) {
       require_divisor(c.remote_memory.hierarchy.switches, c.remote_memory.hierarchy.groups, "memory groups", place);
     })},
    {"out-node-link-bw", "system.remote-memory.link-bandwidth",
     "bandwidth of the link from one out-node switch to one node", Default::needed(), plain_bandwidth(),
     [](auto& c) { return &c.remote_memory.hierarchy.link; },
     only_if(is_pool_of_groups, "memory-type: HIERARCHICAL_POOL")},
    {"out-node-link-latency", "system.remote-memory.link-latency", "latency of that link", Default::value("0"),
     plain_nanoseconds(), [](auto& c) { return &c.remote_memory.hierarchy.link_latency_ns; },
     only_if(is_pool_of_groups, "memory-type: HIERARCHICAL_POOL")},
    {"in-node-fabric-bw", "system.remote-memory.fabric-bandwidth", "bandwidth of the fabric within a node to one NPU",
     Default::needed(), plain_bandwidth(), [](auto& c) { return &c.remote_memory.hierarchy.fabric; },
     only_if(is_pool_of_groups, "memory-type: HIERARCHICAL_POOL")},
    {"in-node-fabric-latency", "system.remote-memory.fabric-latency", "latency of that fabric", Default::value("0"),
     plain_nanoseconds(), [](auto& c) { return &c.remote_memory.hierarchy.fabric_latency_ns; },
     only_if(is_pool_of_groups, "memory-type: HIERARCHICAL_POOL")},
    {"chunk-size", "system.remote-memory.chunk-size",
     "bytes that a group sends at a time when all NPUs access together", Default::needed(),
     ValueInfo("whole number", "a whole number of bytes, 1 or more", "B", "1 or more"), chunk_size(),
     only_if(is_pool_of_groups, "memory-type: HIERARCHICAL_POOL")},
};

}  // namespace

const Keys<Configuration>& remote_memory_json_keys() {
  static const Keys<Configuration> all("remote_memory.json", remote_memory_json_rows);
  return all;
}

/// Returns the remote memory of a file in which memories of several kinds are nested, as LLMServingSim writes it; null
/// if there are none. The other memories have no effect.
const Value* nested_memory(const Value& root, const std::filesystem::path& file, Reading& reading) {
  constexpr std::string_view wanted = "remote_mem";
  const Value* const nested = root.kind == Value::Kind::mapping ? root.find(wanted) : nullptr;
  if (nested == nullptr) return nullptr;
  std::string others;
  for (const Value::Entry& entry : root.entries)
    if (entry.key != wanted) others += fmt::format("{}{}", others.empty() ? "" : ", ", cited(entry.key));
  if (!others.empty())
    reading.configuration.warnings.push_back(
        fmt::format("{}: only {} is read; without effect are the other memories and keys beside it: {}", file.string(),
                    wanted, others));
  return nested;
}

void read_remote_memory_json(const AstraSimInputs& files, Reading& reading) {
  with_file(files.remote_memory, "remote_memory.json", reading, parse_json, [&](const Value& whole) {
    const Value* const nested = nested_memory(whole, files.remote_memory, reading);
    const Value& root = nested == nullptr ? whole : *nested;
    const std::string path = nested == nullptr ? "" : "remote_mem";
    if (root.kind == Value::Kind::mapping && root.entries.empty()) return;  // {}: there is no remote memory
    Sections sections(Section(&root, path, root, reading.faults));
    read_keys(remote_memory_json_keys(), sections, reading.configuration, reading);
    cut_fractions(reading.configuration.remote_memory);
    warn_without_effect(sections.at(""), files.remote_memory, reading);
  });
}

}  // namespace orrery::config
