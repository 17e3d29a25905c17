#include "orrery/npu/program.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"
#include "orrery/communicator/communications.hpp"
#include "orrery/compute/model.hpp"

namespace orrery::npu {
namespace {

using trace::NodeKind;

void number_uses(Program& program, const communicator::DimensionsInUse& dimensions_in_use) {
  const auto& graph = *program.graph;
  std::vector<std::uint32_t> use_of(graph.num_nodes(), 0);
  bool plain = true;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if (!node.is_of_group()) continue;
    const auto use = communicator::use_of(graph, NodeId(i), dimensions_in_use);
    const auto found = std::find(program.uses.begin(), program.uses.end(), use);
    use_of[i] = static_cast<std::uint32_t>(found - program.uses.begin());
    if (found == program.uses.end()) program.uses.push_back(use);
    plain = plain && use_of[i] == node.slot;
  }
  if (!plain) program.use_of = std::move(use_of);
}

}  // namespace

Time duration_of(const trace::Graph& graph, NodeId id, const Options& options, const compute::ComputeModel& model) {
  const auto& node = graph.nodes[id.index()];
  const Time recorded = std::max(graph.duration_of(id), compute::shortest_recorded);
  if (node.kind == NodeKind::instant) return Time::zero();
  if (options.replay_only || node.kind == NodeKind::cpu || node.kind == NodeKind::host) return recorded;
  if (node.kind != NodeKind::compute) return Time::zero();
  return model.duration({node.detail, Bytes(node.size), recorded});
}

Program make_program(std::shared_ptr<const trace::Graph> graph, const Options& options,
                     const communicator::DimensionsInUse& dimensions_in_use) {
  Program program;
  const auto model = compute::make_model(options.compute);
  const auto n = graph->num_nodes();
  program.durations.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto& node = graph->nodes[i];
    if (node.num_dependencies == 0) program.first_nodes.push_back(i);
    program.durations[i] = duration_of(*graph, NodeId(i), options, *model);
    if (node.kind == NodeKind::compute && program.durations[i] == Time::zero() &&
        graph->duration_of(NodeId(i)) > Time::zero())
      ++program.num_unknown_compute;
  }
  program.lifetimes = memory::lifetimes_of(*graph);
  program.dependencies = CountdownPlan(n, [&](std::uint32_t i) { return graph->nodes[i].num_dependencies; });
  program.graph = std::move(graph);
  number_uses(program, dimensions_in_use);
  return program;
}

Programs make_programs(std::span<const trace::NpuTrace> traces, const Options& options,
                       const communicator::DimensionsInUse& dimensions_in_use) {
  Programs programs;
  for (const auto& trace : traces)
    if (auto& program = programs[trace.graph.get()]; !program)
      program = std::make_unique<const Program>(make_program(trace.graph, options, dimensions_in_use));
  return programs;
}

}  // namespace orrery::npu
