#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/npu/run_context.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::npu {

/// Returns a bound of how many nodes of a graph are in service at once, of those for which `counts` [num_nodes] is set;
/// all of these need the communication resource. The bound is the smaller one of what streams allow and the number of
/// chains of dependencies that one pass finds to hold all of the nodes (it looks for 64 at most). It is exact if it is
/// 1, or 2 without streams of the trace. O(nodes * chains).
std::uint32_t most_at_once(const trace::Graph& graph, std::uint32_t comm_streams, const std::vector<char>& counts);

/// Returns [sets of NPUs][num_dimensions] a bound of how many collectives of one NPU are in service at once in a
/// dimension, over all NPUs of a set on all ranks; at least 1. `set_of`: [num_npus] of each NPU; empty: they are one
/// set. A collective is in the dimensions in which its members differ; barriers do not count. Collective. O(members of
/// communicators * dimensions), and most_at_once for each structure and dimension.
std::vector<std::vector<std::uint32_t>> collectives_at_once(const RunContext& run,
                                                            std::span<const std::uint32_t> set_of,
                                                            parallel::Communicator& world);

}  // namespace orrery::npu
