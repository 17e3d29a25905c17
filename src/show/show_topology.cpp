#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/time.hpp"
#include "orrery/config/read.hpp"
#include "orrery/show/commands.hpp"
#include "orrery/topology/topology.hpp"
#include "print_figures.hpp"

namespace orrery::show {
namespace {

/// Programs get numbers in the units of interfaces, people the units that they write.
nlohmann::ordered_json figures_of(const topology::Topology& topology, std::uint32_t d, bool for_programs) {
  const auto& dimension = topology.dimension(d);
  nlohmann::ordered_json figures = {{"shape", topology::name(dimension.shape)}, {"size", dimension.size}};
  if (for_programs) {
    figures["bytes_per_ns"] = dimension.bandwidth.bytes_per_ns();
    figures["latency_ns"] = dimension.latency_ns;
  } else {
    figures["bandwidth"] = to_text(dimension.bandwidth);
    figures["latency"] = readable(duration_from_ns(dimension.latency_ns, Rounding::up_to_ps));
  }
  figures["stride"] = topology.stride(d);
  figures["farthest_hops"] = dimension.size == 1 ? 0 : topology.wiring(d).most_hops();
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

void show_topology(const ShowTopologyCommand& command) {
  const auto configuration = config::read(command.inputs);
  const auto topology = configuration.topology();
  nlohmann::ordered_json figures;
  figures["npus"] = topology.num_npus();
  figures["rules"] = config::name(configuration.rule_set);
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    figures["dimensions"].push_back(figures_of(topology, d, command.json));
  print_figures(figures, command.json);
}

}  // namespace orrery::show
