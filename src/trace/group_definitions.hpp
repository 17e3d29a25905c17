#pragma once

#include <string_view>

#include "raw_trace.hpp"

namespace orrery::trace {

/// True for the name of a node that carries process groups (`## process_group:init ##`).
bool is_group_definition(std::string_view node_name);

/// Adds the groups that the IOInfo message `inputs` of such a node lists, as JSON in `values`:
/// [{"pg_name": ..., "ranks": [...]}, ...]; no ranks = the world. Text that is not understood is counted.
void read_group_definitions(std::string_view inputs, RawTrace& trace);

}  // namespace orrery::trace
