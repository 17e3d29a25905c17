#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/graphfile/ns3_topology.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::graphfile {

/// What a configuration of ns-3 says besides the rules of packets.
struct Ns3Config {
  std::optional<std::filesystem::path> topology;
  std::optional<Ns3LinkDown> link_down;
  std::vector<std::string> without_effect;  ///< names of what only traces use, or what nothing here knows

  /// Returns a line that names these; empty if there are none.
  std::string notice(const std::filesystem::path& file) const;
};

/// Says whether a text is the configuration (config.txt) of the ns-3 of HPCC, ASTRA-sim or SimAI: lines of a name in
/// capitals and values.
bool is_ns3_config(std::string_view text);
/// Reads such a configuration. `rules` has what it does not say, and gets what it says. Throws Error (bad_input) with
/// the line for what is faulty, and for what would change results and cannot be honoured.
Ns3Config read_ns3_config(std::string_view text, const std::filesystem::path& file, network::PacketRules& rules);
/// Says whether a text describes a network as ns-3 does: a topology, or a configuration that names one.
bool is_ns3_graph(std::string_view text);
/// Reads such a network. A configuration also gives the routes, and the failure of a link, that ns-3 has. `notes` get a
/// line about each part of the topology that is left out. Throws Error (bad_input) with the line.
network::GivenGraph read_ns3_graph(std::string_view text, const std::filesystem::path& file,
                                   std::vector<std::string>& notes);

}  // namespace orrery::graphfile
