#include "orrery/executor/program.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"
#include "orrery/device/compute.hpp"

namespace orrery::executor {
namespace {

using trace::NodeKind;

/// Nodes in an order in which dependencies come first.
std::vector<std::uint32_t> topological_order(const trace::Graph& graph) {
  const auto n = graph.num_nodes();
  std::vector<std::uint32_t> order, missing(n);
  order.reserve(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    missing[i] = graph.nodes[i].num_dependencies;
    if (missing[i] == 0) order.push_back(i);
  }
  for (std::size_t k = 0; k < order.size(); ++k)
    for (const auto successor : graph.successors_of(NodeId(order[k])))
      if (--missing[successor] == 0) order.push_back(successor);
  check(order.size() == n, "a graph with a cycle");
  return order;
}

Time duration(const trace::Graph& graph, NodeId id, const Options& options, const Rules& rules) {
  const auto& node = graph.nodes[id.index()];
  const Time recorded = std::max(graph.duration_of(id), device::shortest_recorded);
  if (node.kind == NodeKind::instant) return Time::zero();
  if (options.replay_only || node.kind == NodeKind::cpu) return recorded;
  if (node.kind != NodeKind::compute) return Time::zero();
  if (!options.compute.roofline) return recorded;
  return device::roofline_time(node.detail, Bytes(node.size), options.compute, rules);
}

/// True if another NPU or a server may notice that a node of this kind starts.
bool is_noticeable(NodeKind kind, const Options& options, const device::RemoteMemory& memory) {
  if (options.replay_only) return false;
  switch (kind) {
    case NodeKind::collective:
    case NodeKind::send:
      return true;
    case NodeKind::receive:
      return options.rendezvous;
    case NodeKind::mem_load:
    case NodeKind::mem_store:
      return memory.num_servers() > 0;
    default:
      return false;
  }
}

void number_uses(Program& program, std::uint64_t dimensions_in_use) {
  const auto& graph = *program.graph;
  std::vector<std::uint32_t> use_of(graph.num_nodes(), 0);
  bool plain = true;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if (node.kind != NodeKind::collective) continue;
    const bool all = (node.detail & dimensions_in_use) == dimensions_in_use;
    const GroupUse use{node.slot, all ? trace::all_dimensions : node.detail & dimensions_in_use};
    const auto found = std::find(program.uses.begin(), program.uses.end(), use);
    use_of[i] = static_cast<std::uint32_t>(found - program.uses.begin());
    if (found == program.uses.end()) program.uses.push_back(use);
    plain = plain && use_of[i] == node.slot;
  }
  if (!plain) program.use_of = std::move(use_of);
}

}  // namespace

Time Program::lead(NodeId node) const {
  switch (graph->nodes[node.index()].kind) {
    case NodeKind::compute:
    case NodeKind::cpu:
    case NodeKind::instant:
      return tails[node.index()] == Time::max() ? Time::max() : durations[node.index()] + tails[node.index()];
    default:
      return Time::zero();
  }
}

Program make_program(std::shared_ptr<const trace::Graph> graph, const Options& options, const Rules& rules,
                     const device::RemoteMemory& memory, std::uint64_t dimensions_in_use) {
  Program program;
  const auto n = graph->num_nodes();
  program.durations.resize(n);
  program.tails.assign(n, Time::max());
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto& node = graph->nodes[i];
    program.durations[i] = duration(*graph, NodeId(i), options, rules);
    if (node.kind == NodeKind::compute && program.durations[i] == Time::zero() && graph->duration_of(NodeId(i)) > Time::zero())
      ++program.num_unknown_compute;
  }
  const auto order = topological_order(*graph);
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    Time& tail = program.tails[*node];
    for (const auto s : graph->successors_of(NodeId(*node))) {
      const bool seen = is_noticeable(graph->nodes[s].kind, options, memory);
      tail = std::min(tail, seen ? Time::zero() : program.durations[s] + program.tails[s]);
    }
  }
  program.graph = std::move(graph);
  number_uses(program, dimensions_in_use);
  return program;
}

}  // namespace orrery::executor
