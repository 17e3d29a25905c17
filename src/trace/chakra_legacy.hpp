#pragma once

#include <cstdint>
#include <optional>

#include "parsed_trace.hpp"
#include "wire.hpp"

namespace orrery::trace {

/// Says what a field was: one that was read, one that not all older layouts have, or a malformed one.
enum class LegacyField : std::uint8_t { read, other, malformed };

/// Reads the value of a field that 0.0.1, 0.0.2 and 0.0.3 have alike: id, name, type or parent.
LegacyField parse_legacy_field(Input& input, std::uint32_t tag, ParsedNode& node, ParsedTrace& trace);

/// Returns the node type of a number in the layouts 0.0.1 and 0.0.2, which have no METADATA.
std::optional<NodeType> node_type_without_metadata(std::uint32_t number);

}  // namespace orrery::trace
