#include "turns.hpp"

#include <bit>
#include <utility>

namespace orrery::npu {

using trace::NodeKind;

std::uint64_t dimensions_of(const communicator::CommunicatorSpec& spec, const topology::Topology& topology) {
  const auto& members = spec.group->members;
  std::uint64_t differ = 0, possible = 0;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (topology.dimension(d).size > 1) possible |= (std::uint64_t{1} << d) & spec.dimensions;
  if (members.empty()) return possible;
  for (const NpuId member : members) {
    if (differ == possible) break;
    for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
      if (topology.coordinate(member, d) != topology.coordinate(members.front(), d)) differ |= std::uint64_t{1} << d;
  }
  return differ;
}

namespace {

/// Returns DimensionStreams::tiers of a program. O(nodes).
std::vector<std::uint8_t> tiers_of_uses(const Program& program) {
  const trace::Graph& graph = *program.graph;
  std::vector<std::uint8_t> tiers(program.uses.size());
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i)
    if (graph.nodes[i].kind == NodeKind::collective)
      tiers[program.use_of_node(NodeId(i))] |= static_cast<std::uint8_t>(1U << tier_of(graph, NodeId(i)));
  return tiers;
}

}  // namespace

DimensionStreams dimension_streams_of(const RunContext& run) {
  if (!run.options.dimension_streams || run.options.replay_only) return {};
  std::vector<std::uint64_t> together;  // sets of dimensions, none of which meet
  std::vector<std::uint64_t> masks;     // [communicators]
  for (const auto& spec : run.communicators) {
    std::uint64_t all = run.topology().ports().contending(dimensions_of(spec, run.topology()));
    masks.push_back(all);
    std::erase_if(together, [&](std::uint64_t set) {
      const bool meets = (set & all) != 0;
      if (meets) all |= set;
      return meets;
    });
    if (all != 0) together.push_back(all);
  }
  DimensionStreams streams;
  for (const std::uint64_t mask : masks) {
    std::uint16_t stream = 1;  // also of a group of one NPU, whose collectives take no time
    for (std::size_t set = 0; set < together.size(); ++set)
      if ((together[set] & mask) != 0) stream = static_cast<std::uint16_t>(set + 1);
    streams.of_group.push_back(stream);
  }
  streams.num_sets = static_cast<std::uint16_t>(std::max<std::size_t>(together.size(), 1));
  streams.sends = static_cast<std::uint16_t>(num_tiers * streams.num_sets + 1);
  for (const NpuSpec& npu : run.npus)
    if (!npu.program->graph->priorities.empty())
      if (auto& tiers = streams.tiers[npu.program]; tiers.empty()) tiers = tiers_of_uses(*npu.program);
  return streams;
}

const ResourceTables::Table* ResourceTables::of(const NpuSpec& npu, const DimensionStreams& streams) {
  if (streams.sends == 0) return nullptr;
  Streams of_uses;
  of_uses.reserve(npu.groups.size());
  for (const GroupId group : npu.groups) of_uses.push_back(streams.of_group[group.index()]);
  const auto [found, is_new] = made_.try_emplace({npu.program, std::move(of_uses)});
  if (!is_new) return &found->second;
  const ResourceMap resources(npu, streams, nullptr);
  const std::uint32_t num_nodes = npu.program->graph->num_nodes();
  found->second.reserve(num_nodes);
  for (std::uint32_t i = 0; i < num_nodes; ++i) found->second.push_back(resources.of(NodeId(i)));
  return &found->second;
}

std::uint16_t ResourceMap::turn_of(NodeId id, const trace::Node& node) const {
  std::uint16_t stream = streams_.sends;
  if (node.kind != NodeKind::send) {
    stream = streams_.of_group[npu_.groups[npu_.program->use_of_node(id)].index()];
    stream = static_cast<std::uint16_t>(stream + tier_of(graph(), id) * streams_.num_sets);
  }
  return static_cast<std::uint16_t>(first_dimension_stream() + stream - 1);
}

}  // namespace orrery::npu
