#include "route_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "orrery/graphfile/ns3_topology.hpp"

namespace orrery::config {
namespace {

using network::GivenGraph;
using network::PacketGraph;
using network::StaticRoute;

/// Refuses a row whose destination is no host, or whose next node is no neighbour.
void check_row(const StaticRoute& row, const PacketGraph& graph, const Place& place) {
  const auto refuse = [&](const std::string& found) {
    throw Error(ErrorCode::bad_input, place, found, "a host as destination, and a neighbour as next node");
  };
  if (!graph.node(row.destination).is_host)
    refuse(fmt::format("found destination {}, which is no host", row.destination));
  if (row.node == row.destination) refuse(fmt::format("found a route from node {} to itself", row.node));
  if (std::ranges::none_of(graph.ports(row.node), [&](const auto& port) { return port.peer == row.next; }))
    refuse(fmt::format("found next node {}, which no link joins to node {}", row.next, row.node));
}

std::vector<StaticRoute> read_route_file(const std::filesystem::path& file, const Place& named,
                                         const PacketGraph& graph) {
  std::vector<StaticRoute> rows;
  for (const graphfile::Ns3Line& line : graphfile::ns3_lines(read_text(file, named))) {
    if (line.fields[0].starts_with('#')) continue;
    const Place place{.file = file.string(), .line = line.number};
    if (line.fields.size() != 3)
      throw Error(ErrorCode::bad_input, place, fmt::format("found {} fields", line.fields.size()),
                  "three numbers: node, destination, next node");
    const auto node = [&](std::size_t field) {
      return static_cast<std::uint32_t>(parse_count(line.fields[field], 0, graph.num_nodes() - 1, place));
    };
    rows.push_back({node(0), node(1), node(2)});
    check_row(rows.back(), graph, place);
  }
  if (rows.empty())
    throw Error(ErrorCode::bad_input, {.file = file.string()}, "found no routes", "rows: node, destination, next node");
  return rows;
}

/// Follows the rows of one destination from all hosts.
class RouteWalk {
 public:
  RouteWalk(const GivenGraph& given, const Place& place)
      : given_(given), place_(place), states_(given.graph.num_nodes()) {}

  void check(std::uint32_t destination) {
    std::ranges::fill(states_, State::unseen);
    states_[destination] = State::done;
    for (std::uint32_t h = 0; h < given_.graph.num_hosts(); ++h) visit(given_.graph.host(h), destination);
  }

 private:
  enum class State : std::uint8_t { unseen, open, done };

  std::span<const StaticRoute> rows_of(std::uint32_t node, std::uint32_t destination) const {
    const auto found =
        std::ranges::equal_range(given_.routes.table, std::pair(node, destination), {},
                                 [](const StaticRoute& row) { return std::pair(row.node, row.destination); });
    return {found.begin(), found.end()};
  }

  /// Visits what follows a node, depth first and without recursion.
  void visit(std::uint32_t first, std::uint32_t destination) {
    std::vector<std::pair<std::uint32_t, std::size_t>> way;  // nodes, and how many of their rows were taken
    const auto enter = [&](std::uint32_t node) {
      if (states_[node] == State::done) return;
      if (states_[node] == State::open)
        refuse(fmt::format("found routes to host {} that lead from node {} back to it", destination, node));
      if (rows_of(node, destination).empty())
        refuse(fmt::format("found no route from node {} to host {}", node, destination));
      if (given_.graph.node(node).is_host && !way.empty() && !given_.routes.hosts_forward)
        refuse(fmt::format("found a route to host {} through host {}, which does not forward", destination, node));
      states_[node] = State::open;
      way.emplace_back(node, 0);
    };
    enter(first);
    while (!way.empty()) {
      const auto node = way.back().first;
      const auto rows = rows_of(node, destination);
      if (way.back().second == rows.size()) {
        states_[node] = State::done;
        way.pop_back();
        continue;
      }
      enter(rows[way.back().second++].next);
    }
  }

  [[noreturn]] void refuse(const std::string& found) const {
    throw Error(ErrorCode::bad_input, place_, found, "a route from each host to each other one");
  }

  const GivenGraph& given_;
  const Place& place_;
  std::vector<State> states_;
};

}  // namespace

std::vector<StaticRoute> read_route_table(const Value& value, const std::string& path, const PacketGraph& graph,
                                          Faults& faults) {
  Section section(&value, path, value, faults);
  std::vector<StaticRoute> rows;
  if (const Value* const name = section.find("file")) {
    rows = read_route_file(as_path(*name, section.path("file")), name->place(section.path("file")), graph);
  } else if (const Value* const table = section.need("table", route_expected)) {
    const auto& items = as_list(*table, section.path("table"), route_expected);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Value& item = items[i];
      const std::string key = fmt::format("{}.{}", section.path("table"), i);
      if (item.kind != Value::Kind::sequence || item.items.size() != 3)
        throw Error(ErrorCode::bad_input, item.place(key), fmt::format("found {}", item.description()), route_expected);
      const auto node = [&](std::size_t field) { return as_count(item.items[field], key, 0, graph.num_nodes() - 1); };
      rows.push_back({node(0), node(1), node(2)});
      check_row(rows.back(), graph, item.place(key));
    }
  }
  section.refuse_unknown();
  return rows;
}

void check_route_table(const GivenGraph& given, const Place& place) {
  RouteWalk walk(given, place);
  for (std::uint32_t h = 0; h < given.graph.num_hosts(); ++h) walk.check(given.graph.host(h));
}

}  // namespace orrery::config
