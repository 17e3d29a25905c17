#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orrery/compute/model.hpp"
#include "preflight.hpp"

namespace orrery::check {
namespace {

using compute::ComputeNode;

/// The compute nodes of a structure.
struct ComputeNodes {
  std::uint64_t num_timed = 0;    ///< with a recorded duration
  std::uint64_t num_untimed = 0;  ///< without one, but with FLOPs or bytes
  ComputeNode first_untimed;
};

ComputeNodes compute_nodes_of(const trace::Graph& graph) {
  ComputeNodes found;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const trace::Node& node = graph.nodes[i];
    if (node.kind != trace::NodeKind::compute) continue;
    if (graph.duration_of(NodeId(i)) > Time::zero()) {
      ++found.num_timed;
    } else if (node.detail > 0 || node.size > 0) {
      if (found.num_untimed++ == 0) found.first_untimed = {node.detail, Bytes(node.size), compute::shortest_recorded};
    }
  }
  return found;
}

/// Says what a model makes of a node that it does not know the operations of.
std::string time_without_operations(const compute::ComputeModel& model, const ComputeNode& node) {
  const Time takes = model.duration(node);
  if (takes <= compute::shortest_recorded) return "1 ns";
  const bool counts_flops = model.duration({0, node.tensor_size, node.recorded}) != takes;
  if (node.num_ops > 0 && !counts_flops) return "what its bytes take, whatever its FLOPs";
  return "what its FLOPs and bytes take in one kernel";
}

/// Returns whether each NPU executes what is generated, whose nodes carry their durations.
bool is_generated(const config::Configuration& configuration) {
  return std::ranges::all_of(configuration.workloads(), [](const auto* each) { return each->generated.has_value(); });
}

void note_durations(const Subject& subject, Findings findings) {
  if (is_generated(subject.configuration)) return;
  const auto& options = subject.run.options;
  const auto& type = options.compute.model;
  const bool takes_recorded = options.replay_only || type->uses_recorded;
  if (!takes_recorded && !type->estimates_operations) return;
  const auto model = compute::make_model(options.compute);
  std::map<const trace::Graph*, ComputeNodes> known;
  for (const auto& npu : subject.run.npus) {
    const auto [entry, is_new] = known.try_emplace(npu.program->graph.get());
    ComputeNodes& nodes = entry->second;
    if (is_new) nodes = compute_nodes_of(*entry->first);
    if (takes_recorded && nodes.num_untimed > 0)
      findings.notices.add("durations", npu.id.value(),
                           "compute nodes have num_ops or tensor_size, but no recorded duration: with "
                           "system.compute.model: recorded each takes 1 ns. system.compute.model: roofline computes "
                           "their times",
                           nodes.num_untimed);
    if (takes_recorded || nodes.num_timed + nodes.num_untimed == 0) continue;
    findings.notices.add(
        "durations", npu.id.value(),
        fmt::format("compute nodes of traces name no shapes, so that system.compute.model: {} has no effect on their "
                    "operations: {}{}{}",
                    type.name(), nodes.num_timed > 0 ? "they keep recorded durations" : "",
                    nodes.num_timed > 0 && nodes.num_untimed > 0 ? ", and " : "",
                    nodes.num_untimed > 0 ? fmt::format("a node without a recorded duration takes {}",
                                                        time_without_operations(*model, nodes.first_untimed))
                                          : std::string()),
        nodes.num_timed + nodes.num_untimed);
  }
}

}  // namespace

Check durations() {
  return {"durations", "warning: the compute model gives a compute node of a trace another time than one may expect",
          Check::Local(note_durations)};
}

}  // namespace orrery::check
