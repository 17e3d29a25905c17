#include "collective_sequence.hpp"

#include <span>

#include "orrery/base/mix.hpp"

namespace orrery::check {
namespace {

/// [uses] the first use of the same communicator.
std::vector<std::uint32_t> first_uses(std::span<const GroupId> groups) {
  std::map<GroupId, std::uint32_t> first;
  std::vector<std::uint32_t> result;
  for (const GroupId group : groups)
    result.push_back(first.try_emplace(group, static_cast<std::uint32_t>(result.size())).first->second);
  return result;
}

}  // namespace

void Sequences::append(Sequence& sequence, const trace::Graph& graph, std::uint32_t node) const {
  const auto label = label_of(graph.nodes[node]);
  sequence.nodes.push_back(node);
  sequence.contents += label;
  sequence.order = mix(sequence.order, label);
}

std::uint64_t Sequences::label_of(const trace::Node& node) const {
  const bool is_uneven = may_be_uneven_ && node.kind == trace::NodeKind::collective &&
                         node.collective == trace::CollectiveKind::all_to_all;
  return mix(static_cast<std::uint64_t>(node.kind) << 8U | (static_cast<std::uint64_t>(node.collective) + 1),
             is_uneven ? 0 : node.size);
}

const std::vector<Sequence>& Sequences::of(const npu::NpuSpec& npu) {
  auto first = first_uses(npu.groups);
  const auto [found, added] = known_.try_emplace({npu.program, first});
  if (!added) return found->second;
  auto& sequences = found->second;
  sequences.resize(first.size());
  if (first.empty()) return sequences;
  const auto& graph = *npu.program->graph;
  for (const auto i : graph.topological_order())
    if (graph.nodes[i].is_of_group()) append(sequences[first[npu.program->use_of_node(NodeId(i))]], graph, i);
  return sequences;
}

}  // namespace orrery::check
