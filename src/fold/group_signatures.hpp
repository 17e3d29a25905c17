#pragma once

#include "orrery/fold/signature_graph.hpp"
#include "orrery/npu/run_context.hpp"

namespace orrery::fold {

/// Returns whether the NPUs of a memory server may be equivalent to those of another one: there are several, and
/// nothing is counted of each that would have to be multiplied.
bool folds_servers(const npu::RunContext& context);

/// Returns whether a program accesses remote memory. O(nodes).
bool accesses_memory(const npu::Program& program);

/// Adds the groups of all communicators to the graph: members, layouts, and whether members that arrive together
/// complete together; then, if servers are folded, the NPUs of each memory server. `context` outlives the graph's
/// positions_among. O(members), and one computation of each distinct layout, kind and size.
void add_groups(const npu::RunContext& context, SignatureGraph& graph);

}  // namespace orrery::fold
