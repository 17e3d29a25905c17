#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/network/packet_graph.hpp"

namespace orrery::graphfile {

/// The fields of a line that is not empty, of a file of ns-3.
struct Ns3Line {
  std::uint64_t number = 0;
  std::vector<std::string> fields;
};
std::vector<Ns3Line> ns3_lines(std::string_view text);
/// Reads a rate such as 100Gbps or 50Mb/s. Returns bits per second, 1 to 10^18.
double parse_ns3_rate(std::string rate, const Place& place);

/// A link that fails, between nodes as a file of ns-3 numbers them.
struct Ns3LinkDown {
  Time time;
  std::uint64_t a = 0, b = 0;
};

/// Says whether a text is a topology of ns-3 and no YAML: its first line has three or six fields that begin with a
/// number.
bool is_ns3_topology(std::string_view text);
/// Reads a topology as the ns-3 of HPCC and ASTRA-sim ("nodes switches links") and that of SimAI ("nodes
/// GPUs-per-server NVSwitches switches links GPU-type") take it: the numbers of the switches, then "node node rate
/// delay error-rate" for each link. The nodes that are no switches are hosts, in ascending order. As in ns-3, as many
/// links are read as the first line says; `notes` get a line about what comes after them. Throws Error (bad_input) with
/// the line.
network::GivenGraph read_ns3_topology(std::string_view text, const std::filesystem::path& file,
                                      std::vector<std::string>& notes,
                                      const std::optional<Ns3LinkDown>& link_down = {});

}  // namespace orrery::graphfile
