#pragma once

#include <filesystem>
#include <string_view>

#include "orrery/network/packet_graph.hpp"

namespace orrery::config {

/// Says whether a text is a topology of ns-3 and no YAML: its first line has three or six fields that begin with a
/// number.
bool is_ns3_topology(std::string_view text);
/// Reads a topology as the ns-3 of HPCC and ASTRA-sim ("nodes switches links") and that of SimAI ("nodes
/// GPUs-per-server NVSwitches switches links GPU-type") take it: the numbers of the switches, then "node node rate
/// delay error-rate" for each link. The nodes that are no switches are hosts, in ascending order. Throws Error
/// (bad_input) with the line.
network::GivenGraph read_ns3_topology(std::string_view text, const std::filesystem::path& file);

}  // namespace orrery::config
