#include <array>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/base/quantity.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/time.hpp"
#include "orrery/config/units.hpp"
#include "orrery/topology/network_graph.hpp"
#include "print_figures.hpp"
#include "subcommands.hpp"

namespace orrery::app {
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

ordered_json dimensions_of(const NetworkGraph& graph) {
  ordered_json dimensions = ordered_json::array();
  for (const topology::GraphDimension& dimension : topology::find_dimensions(graph))
    dimensions.push_back({{"shape", dimension.shape}, {"size", dimension.size}});
  return dimensions;
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
      entry["latency_ns"] = *kind.latency_ns;
    } else {
      entry["bandwidth"] = config::to_text(Bandwidth::from_bytes_per_ns(*kind.bytes_per_ns));
      entry["latency"] = config::nanoseconds_to_text(*kind.latency_ns);
    }
    links.push_back(std::move(entry));
  }
  return links;
}

}  // namespace

void show_graph(const config::ShowGraphCommand& command) {
  const ComponentGraph components = topology::read_infragraph(command.file);
  for (const std::string& note : components.notes)
    fmt::print(stderr, "orrery: warning: {}: {}\n", command.file.string(), note);
  NetworkGraph network = topology::network_of(components);
  const bool has_defaults =
      command.defaults.all.bytes_per_ns || command.defaults.all.latency_ns || !command.defaults.of_link.empty();
  if (command.lists_links || has_defaults) topology::complete_links(network, command.defaults, command.file.string());
  ordered_json figures;
  figures["name"] = components.name;
  figures["machines"] = components.machines.size();
  figures["nodes"] = components.components.size();
  figures["edges"] = components.links.size();
  figures["components"] = components_of(components);
  ordered_json& shown = figures["network"];
  shown["npus"] = network.num_npus;
  shown["switches"] = network.num_switches();
  shown["nodes"] = network.nodes.size();
  shown["links"] = network.links.size();
  const ordered_json no_bandwidth = names_without(network, [](const auto& kind) { return !kind.bytes_per_ns; });
  const ordered_json no_latency = names_without(network, [](const auto& kind) { return !kind.latency_ns; });
  if (!no_bandwidth.empty()) shown["links_without_bandwidth"] = no_bandwidth;
  if (!no_latency.empty()) shown["links_without_latency"] = no_latency;
  if (ordered_json dimensions = dimensions_of(network); !dimensions.empty()) figures["dimensions"] = dimensions;
  if (command.lists_links) figures["links"] = links_of(network, command.json);
  print_figures(figures, command.json);
}

}  // namespace orrery::app
