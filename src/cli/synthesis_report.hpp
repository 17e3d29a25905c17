#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "orrery/synthesis/emit.hpp"
#include "orrery/synthesis/fidelity.hpp"
#include "orrery/synthesis/model.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::cli {

/// Calls `take` for each size of the nodes and tensors of distinct traces that is not 0.
template <class Take>
void for_each_trace_size(const std::vector<trace::NpuTrace>& traces, Take take) {
  std::unordered_set<const trace::Graph*> seen;
  for (const trace::NpuTrace& trace : traces) {
    if (!seen.insert(trace.graph.get()).second) continue;
    for (std::uint32_t i = 0; i < trace.graph->num_nodes(); ++i) {
      const trace::Node& node = trace.graph->nodes[i];
      if (node.kind == trace::NodeKind::compute && node.detail > 0) take(node.detail);
      if (node.size > 0) take(node.size);
      if (const auto ps = trace.graph->duration_of(NodeId(i)).ps(); ps > 0) take(static_cast<std::uint64_t>(ps));
    }
    for (const std::uint64_t bytes : trace.graph->tensors.sizes) take(bytes);
  }
}

/// What `orrery synthesize` has done.
struct SynthesisJob {
  const synthesis::Model& model;
  const synthesis::Obfuscation& obfuscation;
  std::optional<synthesis::TraceSet> input;  ///< none if a model was read in place of traces
  synthesis::TraceSet written;
  bool is_of_input_scale = false;
};

/// Prints how true traces at the scale of the input are to it, and how often an attacker names the right one of known
/// models from traces that were synthesized with the same obfuscation (docs/synthesis.md). The known models are presets
/// on 16 NPUs. Cost: that of learning and writing 20 models twice, without files.
void print_synthesis_report(const SynthesisJob& job);

}  // namespace orrery::cli
