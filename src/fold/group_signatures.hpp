#pragma once

#include <cstdint>
#include <functional>

#include "orrery/fold/signature_graph.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/parallel/communicator.hpp"
#include "structures.hpp"

namespace orrery::fold {

/// Returns whether the NPUs of a memory server may be equivalent to those of another one: there are several, and
/// nothing is counted of each that would have to be multiplied.
bool folds_servers(const npu::RunContext& context);

/// Returns the structure of an NPU of any rank.
using StructureOf = std::function<const Structure&(std::uint32_t npu)>;

/// Adds the groups of all communicators to the graph: layouts, and whether members that arrive together complete
/// together; the members of the groups of this rank; and the positions of its NPUs. If servers are folded, the NPUs of
/// each memory server are a group too. The graph has the signatures of all NPUs already, and the memberships of those
/// of this rank: the group of each use, and then `none` if the NPU accesses such a server. `context` outlives the
/// graph's positions_among. Collective. O(members), and one computation of each distinct layout, kind and size.
void add_groups(const npu::RunContext& context, const StructureOf& structure_of, SignatureGraph& graph,
                parallel::Communicator& world);

}  // namespace orrery::fold
