#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orrery/network/packet_graph.hpp"
#include "orrery/topology/network_graph.hpp"

namespace orrery::config {

/// A graph (system.network.graph) with the names of its nodes, the machines that they are in, and kinds of links.
struct GraphFile {
  network::GivenGraph given;
  topology::NetworkGraph network;
  std::vector<topology::GraphDimension> dimensions;  ///< dimensions that lie on the graph; empty if none were found
  std::vector<std::string> notes;                    ///< notes on contents of the file that are left out
};

/// Reads the graph of a file: of a configuration, a mapping of hosts, switches and links, one with a generator, or a
/// topology of ns-3. Returns none if the file is none of these. Throws Error (bad_input).
std::optional<GraphFile> read_graph_file(const std::filesystem::path& file);
/// Reads the graph of a file that describes no NPUs: as read_graph_file, that of a FLOWS.yaml, or a description of
/// InfraGraph. `defaults`: what links of this description lack. Returns none for a configuration. Throws Error
/// (bad_input).
std::optional<GraphFile> read_lone_graph(const std::filesystem::path& file, const topology::LinkDefaults& defaults);
/// Returns the graph of a network whose links all have a bandwidth and a latency.
GraphFile graph_file_of(topology::NetworkGraph network);

/// The NPUs between which no links lead when all failures have happened.
struct CutOff {
  std::uint64_t pairs = 0;          ///< pairs of NPUs, each in both directions
  std::uint32_t from = 0;           ///< the first NPU that reaches the most others
  std::vector<std::uint32_t> npus;  ///< which it does not reach
};
/// Returns who is cut off; nothing if all NPUs reach each other, or the graph is too
/// large for routes. O(hosts * links).
std::optional<CutOff> find_cut_off(const network::GivenGraph& given);

/// Returns the graph as a mapping of hosts, switches and links, as YAML or JSON.
std::string expanded_text(const GraphFile& graph, bool is_json);

}  // namespace orrery::config
