#pragma once

#include <cstdint>

#include "group_layout.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/collective/expert_exchange.hpp"
#include "orrery/collective/options.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::collective {

/// Returns the members of a layout as kernels of experts see them: the rates that the described network gives an NPU,
/// divided by the collectives that run at a time. Cost: that of library_group.
ExpertGroup expert_group(const topology::Topology& topology, const Options& options, const GroupLayout& layout);

/// Returns what an NPU sends in each dimension. A copy for another node counts in each dimension between nodes in which
/// the sender and the receiver differ, and a copy within the node in each such dimension of the node. [num_dimensions]
CollectiveTraffic expert_traffic(const topology::Topology& topology, const GroupLayout& layout, const ExpertTime& time,
                                 std::uint32_t node_dimensions);

}  // namespace orrery::collective
