#pragma once

#include <span>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/network/options.hpp"

namespace orrery::model {

/// Returns the options of the network with the groups of NPUs whose collectives its switches carry out, which a network
/// of packets must know before the run. O(members * dimensions) for each communicator.
network::Options with_reduction_groups(network::Options options, collective::Engine& engine,
                                       std::span<const communicator::CommunicatorSpec> specs);

}  // namespace orrery::model
