#include <cmath>

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

Handling<Configuration> checked_nodes() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            const std::uint32_t nodes = as_count(value, path);
            const std::uint32_t each = std::max(target.remote_memory.npus_per_node, 1U);
            const std::uint32_t npus = count_npus(target.dimensions);
            if (std::uint64_t{nodes} * each < npus)
              throw Error(ErrorCode::bad_input, value.place(path),
                          fmt::format("{} of {} hold fewer than the {} of the network", counted(nodes, "node"),
                                      counted(each, "NPU"), counted(npus, "NPU")),
                          "nodes for all NPUs");
          },
          {},
          {}};
}

void add_memory_types(Keys<Configuration>& keys) {
  keys.add_astra_sim(
      {.name = "memory-type",
       .becomes = "system.remote-memory.kind",
       .help = "kind of remote memory",
       .otherwise = Default::needed()},
      word(memory_types()), [](auto& c) -> auto& { return c.remote_memory.kind; });
  keys.add_astra_sim(
          {.name = "remote-mem-latency",
           .becomes = "system.remote-memory.latency",
           .help = "latency of an access",
           .otherwise = Default::needed()},
          plain_nanoseconds(), [](auto& c) -> auto& { return c.remote_memory.latency_ns; })
      .only_if(has_any_memory, "a memory-type but NO_MEMORY_EXPANSION")
      .accepted_otherwise();
  keys.add_astra_sim(
          {.name = "remote-mem-bw",
           .becomes = "system.remote-memory.bandwidth",
           .help = "bandwidth of one memory",
           .otherwise = Default::needed()},
          plain_bandwidth(), [](auto& c) -> auto& { return c.remote_memory.bandwidth; })
      .only_if(has_any_memory, "a memory-type but NO_MEMORY_EXPANSION")
      .accepted_otherwise();
  keys.add_astra_sim(
          {.name = "num-npus-per-node",
           .becomes = "system.remote-memory.npus-per-node",
           .help = "NPUs of a node, a divisor of the number of NPUs",
           .otherwise = Default::needed()},
          count(), [](auto& c) -> auto& { return c.remote_memory.npus_per_node; })
      .check([](const Configuration& c, const Place& place, const Reading&) {
        require_divisor(c.remote_memory.npus_per_node, count_npus(c.dimensions), "NPUs", place);
      })
      .only_if(has_nodes_of_npus, "memory-type: PER_NODE_MEMORY_EXPANSION or HIERARCHICAL_POOL")
      .accepted_otherwise();
  keys.add_astra_sim({.name = "num-nodes",
                      .becomes = "-",
                      .help = "number of nodes; a fault if they hold fewer NPUs than the network has",
                      .otherwise = Default::none()},
                     count().info, checked_nodes())
      .only_if(has_nodes_of_npus, "memory-type: PER_NODE_MEMORY_EXPANSION or HIERARCHICAL_POOL")
      .accepted_otherwise();
}

/// Adds keys of Orrery's own, in the manner of the others.
void add_pool_of_groups(Keys<Configuration>& keys) {
  const auto add = [&](const AboutAstraSim& about, const auto& type, auto access) -> auto& {
    return keys.add_astra_sim(about, type, access).only_if(is_pool_of_groups, "memory-type: HIERARCHICAL_POOL");
  };
  add(
      {.name = "num-memory-groups",
       .becomes = "system.remote-memory.groups",
       .help = "memory groups",
       .otherwise = Default::needed()},
      count(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.groups; });
  add(
      {.name = "num-out-node-switches",
       .becomes = "system.remote-memory.switches",
       .help = "out-node switches, a divisor of the groups",
       .otherwise = Default::needed()},
      count(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.switches; })
      .check([](const Configuration& c, const Place& place, const Reading&) {
        require_divisor(c.remote_memory.hierarchy.switches, c.remote_memory.hierarchy.groups, "memory groups", place);
      });
  add(
      {.name = "out-node-link-bw",
       .becomes = "system.remote-memory.link-bandwidth",
       .help = "bandwidth of the link from one out-node switch to one node",
       .otherwise = Default::needed()},
      plain_bandwidth(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.link; });
  add(
      {.name = "out-node-link-latency",
       .becomes = "system.remote-memory.link-latency",
       .help = "latency of that link",
       .otherwise = Default::value("0")},
      plain_nanoseconds(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.link_latency_ns; });
  add(
      {.name = "in-node-fabric-bw",
       .becomes = "system.remote-memory.fabric-bandwidth",
       .help = "bandwidth of the fabric within a node to one NPU",
       .otherwise = Default::needed()},
      plain_bandwidth(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.fabric; });
  add(
      {.name = "in-node-fabric-latency",
       .becomes = "system.remote-memory.fabric-latency",
       .help = "latency of that fabric",
       .otherwise = Default::value("0")},
      plain_nanoseconds(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.fabric_latency_ns; });
  keys.add_astra_sim({.name = "chunk-size",
                      .becomes = "system.remote-memory.chunk-size",
                      .help = "bytes that a group sends at a time when all NPUs access together",
                      .otherwise = Default::needed()},
                     {"whole number", "a whole number of bytes, 1 or more", "B", "1 or more"},
                     {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
                        target.remote_memory.hierarchy.chunk = Bytes(as_count(value, path));
                      },
                      {},
                      {}})
      .only_if(is_pool_of_groups, "memory-type: HIERARCHICAL_POOL");
}

/// Drops the fractions of latency and bandwidth, as ASTRA-sim does. A bandwidth below 1 GB/s, with which ASTRA-sim
/// divides by zero, stays.
void cut_fractions(memory::RemoteMemoryOptions& memory) {
  if (memory.kind->has_hierarchy) return;
  memory.latency_ns = std::floor(memory.latency_ns);
  const double bandwidth = memory.bandwidth.bytes_per_ns();
  if (bandwidth >= 1) memory.bandwidth = Bandwidth::from_bytes_per_ns(std::floor(bandwidth));
}

}  // namespace

const Keys<Configuration>& remote_memory_json_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("remote_memory.json");
    add_memory_types(keys);
    add_pool_of_groups(keys);
    return keys;
  }();
  return all;
}

void read_remote_memory_json(const AstraSimInputs& files, Reading& reading) {
  with_file(files.remote_memory, "remote_memory.json", reading, parse_json, [&](const Value& root) {
    if (root.kind == Value::Kind::mapping && root.entries.empty()) return;  // {}: there is no remote memory
    Sections sections(Section(&root, "", root, reading.faults));
    read_keys(remote_memory_json_keys(), sections, reading.configuration, reading);
    cut_fractions(reading.configuration.remote_memory);
    warn_without_effect(sections.at(""), files.remote_memory, reading);
  });
}

}  // namespace orrery::config
