#include "parsed_trace.hpp"

#include <fmt/format.h>

namespace orrery::trace {
namespace {

constexpr std::uint32_t num_node_types = 11;
constexpr std::uint64_t reduce_scatter_block = 8;
constexpr std::uint64_t last_collective = 9;

}  // namespace

std::optional<NodeType> current_node_type(std::uint32_t number) {
  if (number >= num_node_types) return std::nullopt;
  return static_cast<NodeType>(number);
}

std::optional<CollectiveKind> current_collective_kind(std::uint64_t number) {
  for (const auto kind : {CollectiveKind::expert_dispatch, CollectiveKind::expert_combine})
    if (number == static_cast<std::uint64_t>(kind)) return kind;
  if (number > last_collective) return std::nullopt;
  return number == reduce_scatter_block ? CollectiveKind::reduce_scatter : static_cast<CollectiveKind>(number);
}

Place ParsedTrace::place(const ParsedNode& node) const {
  Place place = source.place();
  place.node = node.id;
  if (position_unit == PositionUnit::byte)
    place.byte_offset = node.position;
  else
    place.line = node.position;
  if (node.name != no_name) place.node_name = shown_name(node);
  return place;
}

}  // namespace orrery::trace
