#pragma once

#include "orrery/fold/signature_graph.hpp"
#include "orrery/npu/run_context.hpp"

namespace orrery::fold {

/// Adds the groups of all communicators to the graph: members, layouts, and whether members that arrive together
/// complete together. `context` outlives the graph's positions_among. O(members), and one computation of each distinct
/// layout, kind and size.
void add_groups(const npu::RunContext& context, SignatureGraph& graph);

}  // namespace orrery::fold
