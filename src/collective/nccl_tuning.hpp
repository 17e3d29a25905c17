#pragma once

#include "orrery/collective/library.hpp"
#include "orrery/collective/options.hpp"

namespace orrery::collective {

/// Returns which algorithm, protocol and number of channels NCCL's own tuning model takes for a collective: those with
/// the least time by its tables of latencies and bandwidths. Nothing for kinds that it does not choose for. Source:
/// NVIDIA/nccl at 5067397c, src/graph/tuning.cc and topo.h. What a group does not say is assumed: NVLink within nodes,
/// CPUs of Intel, a NIC for each GPU. O(algorithms).
std::optional<LibraryChoice> nccl_choice(NcclGeneration generation, Kind kind, const LibraryGroup& group, double bytes,
                                         bool has_collnet);

/// Returns the least time of a ring over several nodes for an all-gather or a reduce-scatter, whose bytes alone take so
/// many seconds: by the latencies of a ring's ranks - 1 steps, of which nodes - 1 are between nodes, and the share of
/// the bandwidth that each protocol reaches. Source: as above.
double ring_over_nodes_seconds(const LibraryGroup& group, double moving);

}  // namespace orrery::collective
