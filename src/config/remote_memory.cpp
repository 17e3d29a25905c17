#include <fmt/format.h>

#include "formats.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/config/units.hpp"
#include "orrery/memory/options.hpp"
#include "section.hpp"

namespace orrery::config {
namespace {

using memory::RemoteMemoryKind;

const std::vector<std::pair<std::string_view, RemoteMemoryKind>>& kinds() {
  static const std::vector<std::pair<std::string_view, RemoteMemoryKind>> all = [] {
    std::vector<std::pair<std::string_view, RemoteMemoryKind>> words;
    for (const RemoteMemoryKind kind : RemoteMemoryKind::all()) words.emplace_back(kind.name(), kind);
    return words;
  }();
  return all;
}

void read_hierarchy(Section& section, std::uint32_t num_npus, memory::HierarchyOptions& hierarchy) {
  const auto count = [](const Value& value, const std::string& key) { return as_count(value, key); };
  hierarchy.groups = section.require("groups", "a number of memory groups", 0U, count);
  hierarchy.switches = section.require("switches", "a number of out-node switches that divides the groups", 1U, count);
  hierarchy.link = section.require("link-bandwidth", "of a link from an out-node switch to a node, such as '50 GB/s'",
                                   Bandwidth::from_bytes_per_ns(1), as_bandwidth);
  hierarchy.link_latency_ns = section.get("link-latency", 0.0, as_nanoseconds);
  hierarchy.fabric = section.require("fabric-bandwidth", "of the fabric in a node to each NPU, such as '256 GB/s'",
                                     Bandwidth::from_bytes_per_ns(1), as_bandwidth);
  hierarchy.fabric_latency_ns = section.get("fabric-latency", 0.0, as_nanoseconds);
  hierarchy.chunk = section.require("chunk-size", "what a group sends at a time, such as '1 MiB'", Bytes(1), as_bytes);
  require_divisor(section, "switches", hierarchy.switches, hierarchy.groups, "memory groups");
  if (const Value* const chunk = section.find("chunk-size");
      chunk && hierarchy.groups > 0 && hierarchy.chunk * hierarchy.groups < Bytes(num_npus))
    section.faults().add(
        Error(ErrorCode::bad_input, chunk->place(section.path("chunk-size")),
              fmt::format("found {}", counted(hierarchy.chunk.count(), "byte")),
              fmt::format("a byte for each of the {} NPUs from {} groups, at least", num_npus, hierarchy.groups)));
}

}  // namespace

void require_divisor(Section& section, std::string_view key, std::uint32_t found, std::uint32_t of,
                     std::string_view what) {
  const Value* const value = section.find(key);
  if (value == nullptr || found == 0 || of % found == 0) return;
  section.faults().add(Error(ErrorCode::bad_input, value->place(section.path(key)), fmt::format("found {}", found),
                             fmt::format("a divisor of the {} {}", of, what)));
}

void read_remote_memory(Section section, Configuration& result) {
  auto& memory = result.remote_memory;
  memory.kind = section.choose("kind", memory.kind, kinds());
  memory.bandwidth = section.get("bandwidth", memory.bandwidth, as_bandwidth);
  memory.latency_ns = section.get("latency", memory.latency_ns, as_nanoseconds);
  memory.npus_per_node = section.get("npus-per-node", memory.npus_per_node,
                                     [](const Value& value, const std::string& key) { return as_count(value, key); });
  const bool is_hierarchical = memory.kind->has_hierarchy;
  if (memory.kind->has_memory)
    section.need("bandwidth",
                 is_hierarchical ? "of one memory group, such as '100 GB/s'" : "of one memory, such as '64 GB/s'");
  if (memory.kind->has_nodes) {
    section.need("npus-per-node", "a whole number that divides the number of NPUs");
    require_divisor(section, "npus-per-node", memory.npus_per_node, count_npus(result.dimensions), "NPUs");
  }
  if (is_hierarchical) read_hierarchy(section, count_npus(result.dimensions), memory.hierarchy);
  section.refuse_unknown();
}

std::string to_text(const memory::RemoteMemoryOptions& memory) {
  std::string text = fmt::format("  remote-memory:\n    kind: {}\n", word(kinds(), memory.kind));
  if (memory.bandwidth.bytes_per_ns() > 0) text += fmt::format("    bandwidth: {}\n", to_text(memory.bandwidth));
  text += fmt::format("    latency: {}\n", nanoseconds_to_text(memory.latency_ns));
  if (memory.npus_per_node > 0) text += fmt::format("    npus-per-node: {}\n", memory.npus_per_node);
  if (!memory.kind->has_hierarchy) return text;
  const auto& hierarchy = memory.hierarchy;
  text += fmt::format("    groups: {}\n    switches: {}\n", hierarchy.groups, hierarchy.switches);
  text += fmt::format("    link-bandwidth: {}\n    link-latency: {}\n", to_text(hierarchy.link),
                      nanoseconds_to_text(hierarchy.link_latency_ns));
  text += fmt::format("    fabric-bandwidth: {}\n    fabric-latency: {}\n", to_text(hierarchy.fabric),
                      nanoseconds_to_text(hierarchy.fabric_latency_ns));
  return text + fmt::format("    chunk-size: {} B\n", hierarchy.chunk.count());
}

}  // namespace orrery::config
