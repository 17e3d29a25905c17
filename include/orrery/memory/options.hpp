#pragma once

#include <cstdint>

#include "orrery/base/quantity.hpp"

namespace orrery::memory {

enum class RemoteMemoryKind : std::uint8_t { none, per_npu, per_node, pool, hierarchical_pool };

/// What lies between a hierarchical pool and the NPUs (docs/memory.md). Its groups, nodes and their memory are in
/// RemoteMemoryOptions.
struct HierarchyOptions {
  std::uint32_t groups = 0;    ///< of memory, each with RemoteMemoryOptions::bandwidth and latency
  std::uint32_t switches = 0;  ///< out-node switches, among which groups are divided; each has a link to each node
  Bandwidth link;              ///< of one such link
  double link_latency_ns = 0;
  Bandwidth fabric;  ///< of the fabric within a node, to each NPU
  double fabric_latency_ns = 0;
  Bytes chunk;  ///< what a group sends at a time when all NPUs access together

  /// Throws Error (bad_input) that names the key.
  void validate(std::uint32_t num_npus) const;
};

struct RemoteMemoryOptions {
  RemoteMemoryKind kind = RemoteMemoryKind::none;
  Bandwidth bandwidth;  ///< of one memory; hierarchical_pool: of one group
  double latency_ns = 0;
  std::uint32_t npus_per_node = 0;  ///< per_node and hierarchical_pool: needed
  HierarchyOptions hierarchy = {};  ///< hierarchical_pool: needed
  Rounding rounding = Rounding::up_to_ps;
  /// A memory that an NPU has for itself serves one access at a time; else each has all of its bandwidth.
  bool own_memory_takes_turns = true;

  /// Throws Error (bad_input) that names the key. npus_per_node must divide num_npus, switches must divide groups.
  void validate(std::uint32_t num_npus) const;
};

}  // namespace orrery::memory
