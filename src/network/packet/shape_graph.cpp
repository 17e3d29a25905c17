#include "shape_graph.hpp"

#include <cmath>
#include <deque>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/network/link_delays.hpp"
#include "orrery/topology/wiring.hpp"

namespace orrery::network {

using topology::Fabric;
using topology::LinkId;

void ShapeGraph::refuse_cores() const {
  const topology::Topology& topology = fabric_.topology();
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (fabric_.has_core(d))
      throw Error(
          ErrorCode::bad_input,
          fmt::format("topology, dimension {} ({}): found an oversubscribed switch; expected oversubscription 1 "
                      "in the packet network. A FatTree may be oversubscribed.",
                      d, name(topology.dimension(d).shape)));
}

/// Returns the directed links that exist, ascending.
std::vector<ShapeGraph::Direction> ShapeGraph::directions() const {
  const topology::Topology& topology = fabric_.topology();
  const std::uint32_t num_npus = topology.num_npus();
  const auto node_of = [&](std::int64_t end) {
    return end >= 0 ? static_cast<std::uint32_t>(end) : num_npus + static_cast<std::uint32_t>(-1 - end);
  };
  std::vector<Direction> directions;
  for (std::uint32_t id = 0; id < fabric_.num_links(); ++id) {
    const Fabric::Link link = fabric_.find(LinkId(id));
    if (!fabric_.exists(link)) continue;
    const auto [from, to] = fabric_.ends(link);
    directions.push_back({link.id, node_of(from), node_of(to)});
  }
  return directions;
}

ShapeGraph::ShapeGraph(const Fabric& fabric, const Options& options) : fabric_(fabric), ports_(fabric.num_links()) {
  refuse_cores();
  const std::uint32_t num_npus = fabric.topology().num_npus();
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) graph_.add_host();
  for (std::size_t s = fabric.switches().size(); s > 0; --s) graph_.add_switch(Bytes(options.packets.buffer));
  links_.resize(graph_.num_nodes());
  into_.resize(graph_.num_nodes());
  const LinkDelays delays(fabric, options.rules.rounding);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Direction>> alone;  // without the other direction
  for (const Direction& direction : directions()) {
    into_[direction.to] = direction.link;
    auto& opposite = alone[{direction.to, direction.from}];
    if (opposite.empty()) {
      alone[{direction.from, direction.to}].push_back(direction);
      continue;
    }
    const Direction other = opposite.front();
    opposite.pop_front();
    const Fabric::Link link = fabric.find(direction.link);
    const double rate = fabric.bandwidth(link).bytes_per_ns() * 8e9;
    const topology::GroupLink of_group{fabric.topology().coordinate(link.owner, link.dimension), link.number};
    graph_.add_link({other.from, other.to, static_cast<std::uint64_t>(std::llround(rate)),
                     delays.passes(link, Bytes(0)), link.dimension,
                     !link.is_of_port && fabric.topology().wiring(link.dimension).turns_channel(of_group)});
    for (const Direction& way : {other, direction}) {
      ports_[way.link.index()] = static_cast<std::uint32_t>(links_[way.from].size());
      links_[way.from].push_back(way.link);
    }
  }
  for (const auto& [ends, left] : alone) ensure(left.empty(), "each link of a shape has one that leads back");
}

std::uint16_t ShapeGraph::port_towards(std::uint32_t node, std::uint32_t npu) const {
  if (node == npu) return 0;
  const NpuId to(npu);
  if (graph_.node(node).is_host) return static_cast<std::uint16_t>(ports_[fabric_.first(NpuId(node), to).index()]);
  if (graph_.ports(node).empty()) return 0;
  const auto next = fabric_.next(fabric_.find(into_[node]), to);
  ensure(next.has_value(), "a link leads from each switch towards each NPU");
  return static_cast<std::uint16_t>(ports_[next->index()]);
}

}  // namespace orrery::network
