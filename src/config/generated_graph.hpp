#pragma once

#include "orrery/topology/graph_generator.hpp"
#include "section.hpp"

namespace orrery::config {

/// Reads what links lack: `bandwidth` and `latency` of all, and `links: {NAME: {bandwidth, latency}}`.
topology::LinkDefaults read_link_defaults(Section& section, Faults& faults);

/// Reads a graph that names a generator (docs/graphs.md, *Generated graphs*), and makes it. All links have a
/// rate and a delay. Faults are noted; none is returned then.
std::optional<topology::GeneratedGraph> read_generated_graph(Section& section, Faults& faults);

}  // namespace orrery::config
