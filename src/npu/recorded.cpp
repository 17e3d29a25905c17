#include "orrery/npu/recorded.hpp"

#include <algorithm>
#include <set>

namespace orrery::npu {
namespace {

using trace::NodeKind;

// A message takes two events, each of which is at least half of this.
constexpr Time least = Time::from_ps(2);

}  // namespace

Time recorded_cost(const trace::Graph& graph, NodeId node, const Options& options) {
  if (!options.recorded_communication) return Time::zero();
  const NodeKind kind = graph.nodes[node.index()].kind;
  if (kind != NodeKind::collective && kind != NodeKind::send && kind != NodeKind::receive) return Time::zero();
  const Time recorded = graph.duration_of(node);
  return recorded < least ? Time::zero() : recorded;
}

Time least_recorded_cost(std::span<const NpuSpec> npus, const Options& options, parallel::Communicator& world) {
  if (!options.recorded_communication) return Time::max();
  std::int64_t shortest = Time::max().ps();
  std::set<const trace::Graph*> seen;
  for (const NpuSpec& npu : npus) {
    const trace::Graph& graph = *npu.program->graph;
    if (!seen.insert(&graph).second) continue;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i)
      if (const Time cost = recorded_cost(graph, NodeId(i), options); cost > Time::zero())
        shortest = std::min(shortest, cost.ps());
  }
  world.minimum(std::span(&shortest, 1));
  return Time::from_ps(shortest);
}

}  // namespace orrery::npu
