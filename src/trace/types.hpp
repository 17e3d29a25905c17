#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "raw_trace.hpp"

namespace orrery::trace {

/// Node types in today's numbering.
enum class NodeType : std::uint8_t { invalid, metadata, mem_load, mem_store, comp, comm_send, comm_recv, comm_coll };

/// A node type of a layout; nothing if the layout has no such type, or Orrery no meaning for it.
std::optional<NodeType> node_type(Layout layout, std::uint32_t number);
/// What is known of a node type that has no meaning: "node type 8 (storage)".
std::string describe_node_type(std::uint32_t number);

/// A collective type of a layout; nothing if it has no such type.
std::optional<CollectiveKind> collective_kind(Layout layout, std::uint64_t number);

}  // namespace orrery::trace
