#include <algorithm>

#include <nlohmann/json.hpp>

#include "orrery/config/read.hpp"
#include "orrery/topology/topology.hpp"
#include "print_figures.hpp"
#include "subcommands.hpp"

namespace orrery::app {
namespace {

nlohmann::ordered_json figures_of(const topology::Topology& topology, std::uint32_t d) {
  const auto& dimension = topology.dimension(d);
  std::uint32_t farthest = 0;
  for (std::uint32_t k = 1; k < dimension.size; ++k) farthest = std::max(farthest, topology.hops(d, k));
  nlohmann::ordered_json figures = {{"shape", topology::name(dimension.shape)},
                                    {"size", dimension.size},
                                    {"bytes_per_ns", dimension.bandwidth.bytes_per_ns()},
                                    {"latency_ns", dimension.latency_ns},
                                    {"stride", topology.stride(d)},
                                    {"farthest_hops", farthest}};
  if (dimension.ports > 0) figures["ports"] = dimension.ports;
  if (dimension.routers > 0) {
    figures["npus_per_router"] = dimension.npus_per_router;
    figures["routers"] = dimension.routers;
    figures["global_links"] = dimension.global_links;
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
