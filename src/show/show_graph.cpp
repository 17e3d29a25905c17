#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/text_output.hpp"
#include "orrery/base/time.hpp"
#include "orrery/config/graph_file.hpp"
#include "orrery/graphfile/infragraph.hpp"
#include "orrery/show/commands.hpp"
#include "orrery/topology/network_graph.hpp"
#include "print_figures.hpp"

namespace orrery::show {
namespace {

using nlohmann::ordered_json;
using topology::ComponentGraph;
using topology::NetworkGraph;

/// Returns how many components are of each kind.
ordered_json components_of(const ComponentGraph& graph) {
  static constexpr std::array names = {"custom", "cpu", "xpu", "nic", "memory", "port", "switch"};
  std::array<std::uint64_t, names.size()> counts{};
  for (const ComponentGraph::Component& component : graph.components)
    ++counts[static_cast<std::size_t>(component.kind)];
  ordered_json figures = ordered_json::object();
  for (std::size_t k = 0; k < names.size(); ++k)
    if (counts[k] > 0) figures[names[k]] = counts[k];
  return figures;
}

ordered_json dimensions_of(const std::vector<topology::GraphDimension>& found) {
  ordered_json dimensions = ordered_json::array();
  for (const topology::GraphDimension& dimension : found)
    dimensions.push_back({{"shape", dimension.shape}, {"size", dimension.size}});
  return dimensions;
}

ordered_json graph_counts(const NetworkGraph& network) {
  return {{"npus", network.num_npus},
          {"switches", network.num_switches()},
          {"nodes", network.nodes.size()},
          {"links", network.links.size()}};
}

/// Returns the names of links of the network that lack what `missing` looks for.
template <class Missing>
ordered_json names_without(const NetworkGraph& graph, Missing missing) {
  std::set<std::string> names;
  for (const NetworkGraph::Link& link : graph.links)
    if (missing(graph.kinds[link.kind])) names.insert(graph.kinds[link.kind].name);
  return names;
}

/// Returns the links of the network, all of which have a bandwidth and a latency.
ordered_json links_of(const NetworkGraph& graph, bool for_programs) {
  ordered_json links = ordered_json::array();
  for (const NetworkGraph::Link& link : graph.links) {
    const ComponentGraph::LinkKind& kind = graph.kinds[link.kind];
    ordered_json entry = {{"from", graph.nodes[link.a].name}, {"to", graph.nodes[link.b].name}, {"link", kind.name}};
    if (for_programs) {
      entry["bytes_per_ns"] = *kind.bytes_per_ns;
      if (kind.bytes_per_ns_back) entry["bytes_per_ns_back"] = *kind.bytes_per_ns_back;
      entry["latency_ns"] = *kind.latency_ns;
      if (kind.latency_ns_back) entry["latency_ns_back"] = *kind.latency_ns_back;
    } else {
      const auto rate_text = [](double rate) { return to_text(Bandwidth::from_bytes_per_ns(rate)); };
      entry["bandwidth"] = rate_text(*kind.bytes_per_ns);
      if (kind.bytes_per_ns_back) entry["bandwidth_back"] = rate_text(*kind.bytes_per_ns_back);
      entry["latency"] = nanoseconds_to_text(*kind.latency_ns);
      if (kind.latency_ns_back) entry["latency_back"] = nanoseconds_to_text(*kind.latency_ns_back);
    }
    links.push_back(std::move(entry));
  }
  return links;
}

/// Returns the number of links of each kind.
ordered_json kinds_of(const NetworkGraph& graph) {
  std::map<std::string, std::uint64_t> counts;
  for (const NetworkGraph::Link& link : graph.links) ++counts[graph.kinds[link.kind].name];
  return counts;
}

void write_expanded(const ShowGraphCommand& command, const config::GraphFile& graph) {
  if (!command.output) return;
  check_output(*command.output, command.force);
  TextOutput file(*command.output);
  file.write(config::expanded_text(graph, command.output->extension() == ".json"));
  file.commit();
}

void show_own_graph(const ShowGraphCommand& command, const config::GraphFile& graph) {
  ordered_json figures = {{"network", graph_counts(graph.network)}};
  figures["network"]["links_of_kind"] = kinds_of(graph.network);
  figures["network"]["forwarding"] = graph.given.routes.hosts_forward;
  if (const auto cut = config::find_cut_off(graph.given))
    figures["unreachable"] = {{"pairs", cut->pairs}, {fmt::format("from_npu_{}", cut->from), cut->npus}};
  if (!graph.dimensions.empty()) figures["dimensions"] = dimensions_of(graph.dimensions);
  if (command.lists_links) figures["links"] = links_of(graph.network, command.json);
  write_expanded(command, graph);
  print_figures(figures, command.json);
}

/// Adds what the network of components is, and writes it if that is wanted.
void add_network(const ShowGraphCommand& command, const ComponentGraph& components, ordered_json& figures) {
  NetworkGraph network = topology::network_of(components);
  const bool has_defaults =
      command.defaults.all.bytes_per_ns || command.defaults.all.latency_ns || !command.defaults.of_link.empty();
  if (command.lists_links || command.output || has_defaults)
    topology::complete_links(network, command.defaults, command.file.string());
  ordered_json& shown = figures["network"] = graph_counts(network);
  const ordered_json no_bandwidth = names_without(network, [](const auto& kind) { return !kind.bytes_per_ns; });
  const ordered_json no_latency = names_without(network, [](const auto& kind) { return !kind.latency_ns; });
  if (!no_bandwidth.empty()) shown["links_without_bandwidth"] = no_bandwidth;
  if (!no_latency.empty()) shown["links_without_latency"] = no_latency;
  const auto dimensions = topology::find_dimensions(network);
  if (!dimensions.empty()) figures["dimensions"] = dimensions_of(dimensions);
  if (command.lists_links) figures["links"] = links_of(network, command.json);
  if (command.output) write_expanded(command, config::graph_file_of(std::move(network)));
}

void show_infragraph(const ShowGraphCommand& command) {
  const ComponentGraph components = graphfile::read_infragraph(command.file, command.devices);
  for (const std::string& note : components.notes)
    fmt::print(stderr, "orrery: warning: {}: {}\n", command.file.string(), note);
  ordered_json figures;
  figures["name"] = components.name;
  figures["machines"] = components.machines.size();
  figures["nodes"] = components.components.size();
  figures["edges"] = components.links.size();
  figures["components"] = components_of(components);
  // A NIC or a switch alone has counts, but is no network.
  const bool has_npus = std::ranges::find(components.components, ComponentGraph::Kind::xpu,
                                          &ComponentGraph::Component::kind) != components.components.end();
  if (has_npus || command.lists_links || command.output) add_network(command, components, figures);
  print_figures(figures, command.json);
}

}  // namespace

void show_graph(const ShowGraphCommand& command) {
  const auto graph = config::read_graph_file(command.file);
  if (!graph) return show_infragraph(command);
  if (!command.devices.empty())
    throw Error(ErrorCode::bad_input, {.file = command.file.string()},
                "--devices is given, and the file is no description of InfraGraph", "a description of InfraGraph",
                "A configuration names such files itself: system.network.graph.devices.");
  for (const std::string& note : graph->notes) fmt::print(stderr, "orrery: warning: {}\n", note);
  show_own_graph(command, *graph);
}

}  // namespace orrery::show
