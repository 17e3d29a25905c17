#pragma once

#include "orrery/network/options.hpp"
#include "orrery/npu/run_context.hpp"

namespace orrery::model {

/// Returns the options of the network with the groups of NPUs whose collectives its switches carry out, which a network
/// of packets must know before the run. O(members * dimensions) for each communicator, where a switch offers
/// operations.
network::Options with_reduction_groups(const npu::RunContext& run);

}  // namespace orrery::model
