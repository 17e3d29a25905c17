#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "orrery/memory/options.hpp"

namespace orrery::config {
namespace {

bool has_memory(const Configuration& c, const Reading&) { return c.remote_memory.kind->has_memory; }
bool is_hierarchical(const Configuration& c) { return c.remote_memory.kind->has_hierarchy; }
bool has_nodes(const Configuration& c, const Reading&) { return c.remote_memory.kind->has_nodes; }

/// Throws unless the memory groups send a byte for each NPU at a time.
void require_large_chunk(const Configuration& c, const Place& place, const Reading& reading) {
  const auto& hierarchy = c.remote_memory.hierarchy;
  const std::uint32_t num_npus = count_npus(reading.configuration.dimensions);
  if (hierarchy.groups > 0 && hierarchy.chunk * hierarchy.groups < Bytes(num_npus))
    throw Error(ErrorCode::bad_input, place, fmt::format("found {}", counted(hierarchy.chunk.count(), "byte")),
                fmt::format("a byte for each of the {} NPUs from {} groups, at least", num_npus, hierarchy.groups));
}

constexpr Row<Configuration> remote_memory_rows[] = {
    {"system.remote-memory.kind", "remote memory that the system has", "hierarchical-pool", Default::built_in(),
     word<remote_memory_kinds>(), [](auto& c) { return &c.remote_memory.kind; }, see("memory.md")},
    {"system.remote-memory.bandwidth", "bandwidth of one memory; for a hierarchical pool that of one memory group",
     "100 GB/s", Default::none(), bandwidth(), [](auto& c) { return &c.remote_memory.bandwidth; },
     needed_if(has_memory, "the kind is not none")},
    {"system.remote-memory.latency", "latency of one access", "1 us", Default::built_in(), nanoseconds(),
     [](auto& c) { return &c.remote_memory.latency_ns; }},
    {"system.remote-memory.npus-per-node", "NPUs of a node, a divisor of the number of NPUs", "4", Default::none(),
     count(), [](auto& c) { return &c.remote_memory.npus_per_node; },
     needed_if(has_nodes, "the kind is per-node or hierarchical-pool"),
     check([](const Configuration& c, const Place& place, const Reading& reading) {
       if (has_nodes(c, reading))
         require_divisor(c.remote_memory.npus_per_node, count_npus(c.dimensions), "NPUs", place);
     })},
    {"system.remote-memory.groups", "memory groups", "4", Default::needed(), count(),
     [](auto& c) { return &c.remote_memory.hierarchy.groups; }, only_if(is_hierarchical, "kind: hierarchical-pool")},
    {"system.remote-memory.switches", "out-node switches, a divisor of the groups", "2", Default::needed(), count(),
     [](auto& c) { return &c.remote_memory.hierarchy.switches; }, only_if(is_hierarchical, "kind: hierarchical-pool"),
     check([](const Configuration& c, const Place& place, const Reading&) {
       const auto& hierarchy = c.remote_memory.hierarchy;
       require_divisor(hierarchy.switches, hierarchy.groups, "memory groups", place);
     })},
    {"system.remote-memory.link-bandwidth", "bandwidth of the link from one out-node switch to one node", "50 GB/s",
     Default::needed(), bandwidth(), [](auto& c) { return &c.remote_memory.hierarchy.link; },
     only_if(is_hierarchical, "kind: hierarchical-pool")},
    {"system.remote-memory.link-latency", "latency of that link", "200 ns", Default::built_in(), nanoseconds(),
     [](auto& c) { return &c.remote_memory.hierarchy.link_latency_ns; },
     only_if(is_hierarchical, "kind: hierarchical-pool")},
    {"system.remote-memory.fabric-bandwidth", "bandwidth of the fabric within a node to one NPU", "256 GB/s",
     Default::needed(), bandwidth(), [](auto& c) { return &c.remote_memory.hierarchy.fabric; },
     only_if(is_hierarchical, "kind: hierarchical-pool")},
    {"system.remote-memory.fabric-latency", "latency of that fabric", "5 ns", Default::built_in(), nanoseconds(),
     [](auto& c) { return &c.remote_memory.hierarchy.fabric_latency_ns; },
     only_if(is_hierarchical, "kind: hierarchical-pool")},
    {"system.remote-memory.chunk-size", "bytes that a group sends at a time when all NPUs access together", "1 MiB",
     Default::needed(), size(1, "1 MiB"), [](auto& c) { return &c.remote_memory.hierarchy.chunk; },
     only_if(is_hierarchical, "kind: hierarchical-pool"), check(require_large_chunk)},
};

}  // namespace

void require_divisor(std::uint32_t found, std::uint32_t of, std::string_view what, const Place& place) {
  if (found == 0 || of % found == 0) return;
  throw Error(ErrorCode::bad_input, place, fmt::format("found {}", found),
              fmt::format("a divisor of the {} {}", of, what));
}

const Keys<Configuration>& remote_memory_keys() {
  static const Keys<Configuration> all("system.remote-memory", remote_memory_rows);
  return all;
}

}  // namespace orrery::config
