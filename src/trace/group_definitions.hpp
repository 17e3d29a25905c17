#pragma once

#include <string_view>

#include "parsed_trace.hpp"

namespace orrery::trace {

/// Says whether a node of this name carries process groups (`## process_group:init ##`).
bool is_group_definition(std::string_view node_name);

/// Adds the groups that the IOInfo message `inputs` of such a node lists as JSON in its `values`:
/// [{"pg_name": ..., "ranks": [...]}, ...]. A group without ranks has all NPUs. Counts text that is not understood.
void read_group_definitions(std::string_view inputs, ParsedTrace& trace);

/// Adds the groups of one such text.
void read_group_list(std::string_view text, ParsedTrace& trace);

}  // namespace orrery::trace
