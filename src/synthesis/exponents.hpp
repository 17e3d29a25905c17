#pragma once

#include <span>

#include "channels.hpp"

namespace orrery::synthesis {

/// Says how sizes change with the size of an axis as far as one set of traces tells: an all-gather along an axis takes
/// shards, and so do the nodes between a reduce-scatter and an all-gather along it. Other sizes stay. O(nodes).
void assume_exponents(const Program& program, const std::vector<Location>& locations, const Model& model, Role& role);

}  // namespace orrery::synthesis
