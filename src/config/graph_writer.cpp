// A graph as text, in the words that graph_reader.cpp reads.
#include <fmt/format.h>

#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "graph_reader.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/graph_file.hpp"

namespace orrery::config {
namespace {

using nlohmann::ordered_json;

/// Returns a number with the largest unit that leaves it whole.
std::string with_unit(std::uint64_t value, std::initializer_list<std::pair<std::uint64_t, std::string_view>> units) {
  for (const auto& [factor, unit] : units)
    if (value % factor == 0 && value > 0) return fmt::format("{} {}", value / factor, unit);
  return fmt::format("{} {}", value, std::prev(units.end())->second);
}
std::string rate_text(std::uint64_t rate) {
  return with_unit(rate, {{1'000'000'000, "Gb/s"}, {1'000'000, "Mb/s"}, {1, "b/s"}});
}
std::string delay_text(Time delay) {
  return with_unit(static_cast<std::uint64_t>(delay.ps()), {{1'000'000, "us"}, {1000, "ns"}, {1, "ps"}});
}

/// Returns a row of `links`: one rate and one delay, or both of each if the directions differ.
ordered_json link_row(const network::PacketGraph::Link& link) {
  ordered_json rate = rate_text(link.rate), delay = delay_text(link.delay);
  if (link.back && link.back->rate != link.rate) rate = {rate, rate_text(link.back->rate)};
  if (link.back && link.back->delay != link.delay) delay = {delay, delay_text(link.back->delay)};
  return {link.a, link.b, rate, delay};
}

ordered_json as_json(const network::GivenGraph& given) {
  const network::PacketGraph& graph = given.graph;
  ordered_json json = {{"hosts", graph.num_hosts()}, {"switches", graph.num_nodes() - graph.num_hosts()}};
  json["forwarding"] = given.routes.hosts_forward;
  if (given.routes.table.empty()) json["routes"] = text_of(graph_routes(), given.routes.paths);
  for (const auto& row : given.routes.table) json["routes"]["table"].push_back({row.node, row.destination, row.next});
  json["links"] = ordered_json::array();
  for (const auto& link : graph.links()) json["links"].push_back(link_row(link));
  for (const auto& [number, time] : given.failures)
    json["failures"].push_back({graph.links()[number].a, graph.links()[number].b, delay_text(time)});
  return json;
}

/// Returns a value in YAML's flow style.
std::string flow_style(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return value.dump();
  std::string items;
  for (const auto& [key, item] : value.items())
    items += fmt::format("{}{}{}", items.empty() ? "" : ", ", value.is_object() ? key + ": " : "", flow_style(item));
  return value.is_object() ? "{" + items + "}" : "[" + items + "]";
}

}  // namespace

std::string graph_text(const network::GivenGraph& given) { return flow_style(as_json(given)); }

std::string expanded_text(const GraphFile& graph, bool is_json) {
  const ordered_json json = as_json(graph.given);
  if (is_json) return json.dump() + "\n";
  std::string text;
  for (std::size_t node = graph.network.num_npus; node < graph.network.nodes.size(); ++node)
    text += fmt::format("# {} is {}\n", node, cited(graph.network.nodes[node].name));
  for (const auto& [key, value] : json.items()) {
    text += fmt::format("{}:{}\n", key, value.is_array() ? "" : " " + flow_style(value));
    for (std::size_t row = 0; value.is_array() && row < value.size(); ++row)
      text += fmt::format("  - {}\n", flow_style(value[row]));
  }
  return text;
}

}  // namespace orrery::config
