#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "orrery/memory/options.hpp"

namespace orrery::config {
namespace {

using memory::RemoteMemoryKind;

bool has_memory(const Configuration& c, const Reading&) { return c.remote_memory.kind != RemoteMemoryKind::none; }
bool is_hierarchical(const Configuration& c) { return c.remote_memory.kind == RemoteMemoryKind::hierarchical_pool; }
bool has_nodes(const Configuration& c, const Reading&) {
  return c.remote_memory.kind == RemoteMemoryKind::per_node || is_hierarchical(c);
}

/// Throws unless the memory groups send a byte for each NPU at a time.
void require_large_chunk(const Configuration& c, const Place& place, const Reading& reading) {
  const auto& hierarchy = c.remote_memory.hierarchy;
  const std::uint32_t num_npus = count_npus(reading.configuration.dimensions);
  if (hierarchy.groups > 0 && hierarchy.chunk * hierarchy.groups < Bytes(num_npus))
    throw Error(ErrorCode::bad_input, place, fmt::format("found {}", counted(hierarchy.chunk.count(), "byte")),
                fmt::format("a byte for each of the {} NPUs from {} groups, at least", num_npus, hierarchy.groups));
}

void add_memory(Keys<Configuration>& keys) {
  keys.add(
      {.path = "system.remote-memory.kind",
       .help = "remote memory that the system has",
       .example = "hierarchical-pool",
       .otherwise = Default::built_in(),
       .see = "memory.md"},
      word(remote_memory_kinds()), [](auto& c) -> auto& { return c.remote_memory.kind; });
  keys.add(
          {.path = "system.remote-memory.bandwidth",
           .help = "bandwidth of one memory; for a hierarchical pool that of one memory group",
           .example = "100 GB/s",
           .otherwise = Default::none()},
          bandwidth(), [](auto& c) -> auto& { return c.remote_memory.bandwidth; })
      .needed_if(has_memory, "the kind is not none");
  keys.add(
      {.path = "system.remote-memory.latency",
       .help = "latency of one access",
       .example = "1 us",
       .otherwise = Default::built_in()},
      nanoseconds(), [](auto& c) -> auto& { return c.remote_memory.latency_ns; });
  keys.add(
          {.path = "system.remote-memory.npus-per-node",
           .help = "NPUs of a node, a divisor of the number of NPUs",
           .example = "4",
           .otherwise = Default::none()},
          count(), [](auto& c) -> auto& { return c.remote_memory.npus_per_node; })
      .needed_if(has_nodes, "the kind is per-node or hierarchical-pool")
      .check([](const Configuration& c, const Place& place, const Reading& reading) {
        if (has_nodes(c, reading))
          require_divisor(c.remote_memory.npus_per_node, count_npus(c.dimensions), "NPUs", place);
      });
}

void add_hierarchy(Keys<Configuration>& keys) {
  keys.add(
          {.path = "system.remote-memory.groups",
           .help = "memory groups",
           .example = "4",
           .otherwise = Default::needed()},
          count(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.groups; })
      .only_if(is_hierarchical, "kind: hierarchical-pool");
  keys.add(
          {.path = "system.remote-memory.switches",
           .help = "out-node switches, a divisor of the groups",
           .example = "2",
           .otherwise = Default::needed()},
          count(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.switches; })
      .check([](const Configuration& c, const Place& place, const Reading&) {
        const auto& hierarchy = c.remote_memory.hierarchy;
        require_divisor(hierarchy.switches, hierarchy.groups, "memory groups", place);
      })
      .only_if(is_hierarchical, "kind: hierarchical-pool");
  keys.add(
          {.path = "system.remote-memory.link-bandwidth",
           .help = "bandwidth of the link from one out-node switch to one node",
           .example = "50 GB/s",
           .otherwise = Default::needed()},
          bandwidth(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.link; })
      .only_if(is_hierarchical, "kind: hierarchical-pool");
  keys.add(
          {.path = "system.remote-memory.link-latency",
           .help = "latency of that link",
           .example = "200 ns",
           .otherwise = Default::built_in()},
          nanoseconds(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.link_latency_ns; })
      .only_if(is_hierarchical, "kind: hierarchical-pool");
  keys.add(
          {.path = "system.remote-memory.fabric-bandwidth",
           .help = "bandwidth of the fabric within a node to one NPU",
           .example = "256 GB/s",
           .otherwise = Default::needed()},
          bandwidth(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.fabric; })
      .only_if(is_hierarchical, "kind: hierarchical-pool");
  keys.add(
          {.path = "system.remote-memory.fabric-latency",
           .help = "latency of that fabric",
           .example = "5 ns",
           .otherwise = Default::built_in()},
          nanoseconds(), [](auto& c) -> auto& { return c.remote_memory.hierarchy.fabric_latency_ns; })
      .only_if(is_hierarchical, "kind: hierarchical-pool");
  keys.add(
          {.path = "system.remote-memory.chunk-size",
           .help = "bytes that a group sends at a time when all NPUs access together",
           .example = "1 MiB",
           .otherwise = Default::needed()},
          size(1, "1 MiB"), [](auto& c) -> auto& { return c.remote_memory.hierarchy.chunk; })
      .check(require_large_chunk)
      .only_if(is_hierarchical, "kind: hierarchical-pool");
}

}  // namespace

void require_divisor(std::uint32_t found, std::uint32_t of, std::string_view what, const Place& place) {
  if (found == 0 || of % found == 0) return;
  throw Error(ErrorCode::bad_input, place, fmt::format("found {}", found),
              fmt::format("a divisor of the {} {}", of, what));
}

const Keys<Configuration>& remote_memory_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("system.remote-memory");
    add_memory(keys);
    add_hierarchy(keys);
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
