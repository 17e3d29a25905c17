#pragma once

#include <cstdint>
#include <vector>

#include "orrery/npu/run_context.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::npu {

/// A bound of the nodes of a graph that are in service at once, of those that `counts` [num_nodes] names, all of the
/// communication resource: what streams allow, and the chains of dependencies that one pass finds to hold all of them
/// (64 at the most are looked for). Exact if it is 1, or 2 without streams of the
/// trace. O(nodes * chains).
std::uint32_t most_at_once(const trace::Graph& graph, std::uint32_t comm_streams, const std::vector<char>& counts);

/// [num_dimensions] a bound of the collectives of one NPU that are in service at once in a dimension, over all NPUs of
/// all ranks; at least 1. A collective is in the dimensions in which its members differ; barriers do not count.
/// Collective. O(members of communicators * dimensions), and most_at_once for each structure and dimension.
std::vector<std::uint32_t> collectives_at_once(const RunContext& setting, parallel::Communicator& world);

}  // namespace orrery::npu
