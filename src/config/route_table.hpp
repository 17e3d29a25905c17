#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orrery/network/packet_graph.hpp"
#include "section.hpp"

namespace orrery::config {

constexpr std::string_view route_expected = "rows [node, destination, next node] such as [4, 0, 6]";

/// Reads a table of routes from {file: NAME}, a text with a row in each line, or from {table: ROWS}. The rows are
/// returned in the order that RouteRules wants.
std::vector<network::StaticRoute> read_route_table(const Value& value, const std::string& path,
                                                   const network::PacketGraph& graph, Faults& faults);
/// Throws Error (bad_input) unless the table leads from each host to each other one: with the first node that has no
/// row for a destination, or from which packets go round in a circle.
void check_route_table(const network::GivenGraph& given, const Place& place);

}  // namespace orrery::config
