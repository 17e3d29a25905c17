#pragma once

#include <cstdint>

#include "group_layout.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/collective/expert_exchange.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::collective {

/// Returns a group of `nodes` nodes as kernels of experts see it: the rates that the described network gives an NPU.
/// Dimensions before `node_dimensions` are within a node. O(dimensions).
ExpertGroup expert_group(const topology::Topology& topology, const GroupLayout& layout, std::uint32_t nodes,
                         std::uint32_t node_dimensions);

/// Returns what an NPU sends in each dimension. A copy for another node counts in each dimension between nodes in which
/// the sender and the receiver differ, and one within the node likewise. [num_dimensions]
CollectiveTraffic expert_traffic(const topology::Topology& topology, const GroupLayout& layout, const ExpertTime& time,
                                 std::uint32_t node_dimensions);

}  // namespace orrery::collective
