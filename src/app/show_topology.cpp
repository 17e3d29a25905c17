#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "orrery/config/read.hpp"
#include "orrery/topology/topology.hpp"
#include "print_figures.hpp"
#include "subcommands.hpp"

namespace orrery::app {
namespace {

nlohmann::ordered_json figures_of(const topology::Topology& topology, std::uint32_t d) {
  const auto& dimension = topology.dimension(d);
  nlohmann::ordered_json figures = {{"shape", topology::name(dimension.shape)},
                                    {"size", dimension.size},
                                    {"bytes_per_ns", dimension.bandwidth.bytes_per_ns()},
                                    {"latency_ns", dimension.latency_ns},
                                    {"stride", topology.stride(d)},
                                    {"farthest_hops", dimension.size == 1 ? 0 : topology.wiring(d).most_hops()}};
  for (const topology::ShapeParameter& parameter : dimension.shape->parameters) {
    std::string key(parameter.name);
    std::ranges::replace(key, '-', '_');
    figures[key] = dimension.parameter(parameter.name);
  }
  if (dimension.links > 1) figures["links"] = dimension.links;
  if (dimension.oversubscription > 1) figures["oversubscription"] = dimension.oversubscription;
  if (dimension.in_switch_operations > 0) figures["in_switch_operations"] = dimension.in_switch_operations;
  return figures;
}

}  // namespace

void show_topology(const config::ShowTopologyCommand& command) {
  const auto configuration = config::read(command.inputs);
  const auto topology = configuration.topology();
  nlohmann::ordered_json figures;
  figures["npus"] = topology.num_npus();
  figures["rules"] = config::name(configuration.rule_set);
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    figures["dimensions"].push_back(figures_of(topology, d));
  print_figures(figures, command.json);
}

}  // namespace orrery::app
