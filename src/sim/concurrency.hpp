#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/executor/executor.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::sim {

/// [num_dimensions] how many collectives of one NPU may be in service at once in a dimension, over all NPUs of all
/// ranks; at least 1. A bound: dependencies order those of a chain, of which as few are looked for as one pass finds,
/// and an NPU is in no more than it has streams. A collective is in the dimensions in which its members differ.
/// Collective. O(members of communicators * dimensions), and for each structure O(nodes * streams) for each dimension.
std::vector<std::uint32_t> collectives_at_once(const executor::Setting& setting, parallel::Communicator& world);

}  // namespace orrery::sim
