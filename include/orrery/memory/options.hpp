#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "orrery/base/quantity.hpp"
#include "orrery/base/registry.hpp"

namespace orrery::memory {

struct RemoteMemoryOptions;
class RemoteMemoryModel;

/// A kind of remote memory of the registry.
struct RemoteMemoryType {
  std::string_view name;          ///< as configurations spell it
  std::string_view help;          ///< one line
  bool has_memory = true;         ///< false: NPUs have no remote memory
  bool has_nodes = false;         ///< needs RemoteMemoryOptions::npus_per_node
  bool has_hierarchy = false;     ///< needs RemoteMemoryOptions::hierarchy
  bool combines_on_path = false;  ///< its switches carry out collectives of what NPUs load and store
  /// Makes the memory of so many NPUs from options that are valid.
  std::unique_ptr<const RemoteMemoryModel> (*make)(const RemoteMemoryOptions& options,
                                                   std::uint32_t num_npus) = nullptr;

  /// Returns all kinds: the table of src/memory/model_registry.cpp.
  static std::span<const RemoteMemoryType* const> registry();
};

using RemoteMemoryKind = Registered<RemoteMemoryType>;

/// What lies between a hierarchical pool and the NPUs (docs/memory.md). Its groups, nodes and their memory are in
/// RemoteMemoryOptions.
struct HierarchyOptions {
  std::uint32_t groups = 0;    ///< memory groups, each with RemoteMemoryOptions::bandwidth and latency
  std::uint32_t switches = 0;  ///< out-node switches, among which groups are divided; each has a link to each node
  Bandwidth link;              ///< bandwidth of one such link
  double link_latency_ns = 0;
  Bandwidth fabric;  ///< bandwidth of the fabric within a node, to each NPU
  double fabric_latency_ns = 0;
  Bytes chunk;  ///< bytes that a group sends at a time when all NPUs access together

  /// Throws Error (bad_input) that names the key.
  void validate(std::uint32_t num_npus) const;
};

struct RemoteMemoryOptions {
  RemoteMemoryKind kind;
  Bandwidth bandwidth;  ///< bandwidth of one memory; of a hierarchical pool: of one group
  double latency_ns = 0;
  std::uint32_t npus_per_node = 0;
  HierarchyOptions hierarchy = {};
  Rounding rounding = Rounding::up_to_ps;
  /// A memory that an NPU has for itself serves one access at a time; otherwise each access has all of its bandwidth.
  bool own_memory_takes_turns = true;
  /// Requests of one time to a memory that NPUs share are served in the order of EventPlace; else of NPU numbers.
  bool orders_requests = false;
  /// An access to a memory that NPUs share may take no time, with Rounding::down_to_ns; otherwise it takes at least a
  /// tick.
  bool may_take_no_time = false;

  /// Throws Error (bad_input) that names the key. npus_per_node must divide num_npus, switches must divide groups.
  void validate(std::uint32_t num_npus) const;
};

}  // namespace orrery::memory
