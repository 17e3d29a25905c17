#pragma once

#include <cstdint>

#include "name_pool.hpp"
#include "raw_trace.hpp"
#include "wire.hpp"

namespace orrery::trace {

/// Reads the Node message in `input` into `node` and its dependencies into `trace`. Names go to `names`.
/// False for bytes that are no Node of the layout; the input then stands at the fault.
bool parse_node(Input& input, RawNode& node, RawTrace& trace, NamePool& names);         ///< today's layout
bool parse_node_v0_0_1(Input& input, RawNode& node, RawTrace& trace, NamePool& names);  ///< attributes are fields
bool parse_node_v0_0_3(Input& input, RawNode& node, RawTrace& trace, NamePool& names);  ///< 0.0.2 as well

/// Takes over what an attribute says.
void apply_attribute(const AttributeValue& value, RawNode& node, NamePool& names);

/// The dimensions that a list of flags names. Flags that are all set mean every dimension, however many there are.
std::uint64_t dimensions_of(std::uint64_t flags, unsigned num_flags);

}  // namespace orrery::trace
