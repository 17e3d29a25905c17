#pragma once

#include <span>

#include "orrery/trace/lone_file.hpp"

namespace orrery::show {

// The functions print the nodes of traces on standard output one by one. Names are printed as UTF-8 without control
// characters. Cost O(nodes + dependencies).

/// Prints a line with the version of Chakra's schema for each trace, and then a line for each node, all as JSON in the
/// words of protocol buffers: what Chakra's jsonizer prints of the file that `orrery convert` would write.
void print_nodes(const trace::Store& store, std::span<const trace::LoneTrace> traces);
/// Prints the graph in the language of Graphviz.
void print_dot(const trace::Store& store, std::span<const trace::LoneTrace> traces);
/// Prints the graph as GraphML.
void print_graphml(const trace::Store& store, std::span<const trace::LoneTrace> traces);

/// Returns "collective", "compute", ...
std::string_view name_of(trace::NodeKind kind);

}  // namespace orrery::show
