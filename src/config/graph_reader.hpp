#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/network/packet_graph.hpp"
#include "orrery/topology/graph_generator.hpp"
#include "orrery/topology/network_graph.hpp"
#include "section.hpp"

namespace orrery::config {

/// What the hosts of a graph are for.
enum class GraphHosts { of_npus, alone };

/// A graph, and what it was generated as, if it was.
struct WholeGraph {
  network::GivenGraph given;
  std::optional<topology::GeneratedGraph> generated;
  std::vector<std::string> notes;  ///< notes on contents of the file that are left out
};
/// Reads a graph of hosts, switches and links (docs/graphs.md), or the name of a file
/// with one. Switches have no buffers yet. Faults are noted, and what is faulty is left out.
WholeGraph read_graph(const Value& value, const std::string& path, GraphHosts hosts, Faults& faults);
/// Returns the words for kinds of routes.
const Words<network::GraphRoutes>& graph_routes();
/// Says whether a file holds a mapping that read_graph reads, and not one of another program.
bool is_own_graph(const Value& root);
/// Throws Error (bad_input) that says what a file is which describes no graph, if its kind is known: before it is read
/// as YAML, by its text.
void refuse_other_text(const std::filesystem::path& file, std::string_view text);
/// Does the same for a file that has been read as YAML, and is no mapping of this reader.
void refuse_other_file(const std::filesystem::path& file, const Value& root);
/// Returns a network whose links all have a rate and a delay. Its NPUs forward if they have links between them.
network::GivenGraph graph_of(const topology::NetworkGraph& network);
/// Returns the graph as a mapping in YAML's flow style, which read_graph reads.
std::string graph_text(const network::GivenGraph& given);

}  // namespace orrery::config
