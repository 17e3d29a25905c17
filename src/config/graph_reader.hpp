#pragma once

#include <string>

#include "orrery/network/packet_graph.hpp"
#include "section.hpp"

namespace orrery::config {

/// What the hosts of a graph are for.
enum class GraphHosts { of_npus, alone };

/// Reads a graph of hosts, switches and links (docs/packet-network.md, *A graph of your own*), or the name of a file
/// with one. Switches have no buffers yet. Faults are noted, and what is faulty is left out.
network::GivenGraph read_graph(const Value& value, const std::string& path, GraphHosts hosts, Faults& faults);
/// Returns the graph as a mapping in YAML's flow style, which read_graph reads.
std::string graph_text(const network::GivenGraph& given);

}  // namespace orrery::config
