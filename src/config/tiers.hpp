#pragma once

#include "orrery/config/configuration.hpp"

namespace orrery::config {

/// Returns whether two dimensions may be tiers of one fabric, which an NPU reaches through one port: it has one link
/// into each, both of one bandwidth, and no switch works on data.
bool are_tiers(const topology::Dimension& a, const topology::Dimension& b);

/// Lets dimensions in a row that name no port share one if they are tiers, such as leaf and spine switches behind a
/// network card. With a library, links within a node and between nodes share none. Does nothing under `astra-sim` rules
/// and on a graph.
void settle_ports(Configuration& configuration);

}  // namespace orrery::config
