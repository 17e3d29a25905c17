#include "orrery/workload/figures.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "layer.hpp"
#include "model_states.hpp"
#include "ops.hpp"
#include "orrery/base/text.hpp"
#include "placement.hpp"
#include "schedule.hpp"
#include "step.hpp"

namespace orrery::workload {
namespace {

using trace::NodeKind;

using Dealt = std::vector<std::span<const Layer>>;

std::uint64_t peak_activations(const Parallel& parallel, const Dealt& dealt, std::uint32_t stage) {
  std::int64_t kept = 0, peak = 0;
  for (const Pass& pass : passes_of(parallel, stage)) {
    for (const Layer& layer : dealt[pass.chunk * parallel[Axis::pp] + stage])
      kept += (pass.forward ? 1 : -1) * static_cast<std::int64_t>(layer.activations);
    peak = std::max(peak, kept);
  }
  return static_cast<std::uint64_t>(peak);
}

StageFigures figures_of(const Parallel& parallel, const Dealt& dealt, std::uint32_t stage) {
  const auto structure = step_of_stage(parallel, dealt, stage);
  const auto& graph = structure.graph;
  StageFigures result;
  result.nodes = graph.num_nodes();
  const Places places = model_states(parallel, layers_of_stage(parallel, dealt, stage));
  result.memory = places.local;
  result.memory.activations = peak_activations(parallel, dealt, stage);
  result.remote = places.remote;
  const auto count = [&](const std::string& kind, std::uint64_t bytes) {
    auto& traffic = result.traffic[kind];
    ++traffic.count;
    traffic.bytes += bytes;
  };
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if (node.kind == NodeKind::compute) result.flops += node.detail;
    if (node.is_of_group())
      count(fmt::format("{} {}", trace::name(node.kind, node.collective),
                        name(static_cast<GroupKind>(structure.groups[node.slot]))),
            node.size);
    else if (node.is_access())
      count(node.kind == NodeKind::mem_load ? "load" : "store", node.size);
    if (node.kind == NodeKind::send) count("send pp", node.size);
  }
  return result;
}

std::string memory_text(const Memory& memory, bool is_local) {
  return fmt::format("parameters {}, gradients {}, optimizer {}{}: {}", binary_size(memory.parameters),
                     binary_size(memory.gradients), binary_size(memory.optimizer),
                     is_local ? fmt::format(", activations {}", binary_size(memory.activations)) : "",
                     binary_size(memory.total()));
}

std::string readable(std::uint64_t value) { return with_prefix(static_cast<double>(value)); }

/// "2 samples, 4.096 k tokens, 9.03 EFLOPs ...": of a workload by times nothing of FLOPs.
std::string step_text(const Figures& figures, bool has_tokens) {
  std::string text = counted(figures.samples, "sample");
  if (has_tokens) text += fmt::format(", {} tokens", readable(figures.tokens));
  if (figures.model_flops > 0)
    text += fmt::format(", {}FLOPs of the model ({}FLOPs for each {})", with_prefix(figures.model_flops),
                        with_prefix(figures.model_flops / static_cast<double>(figures.tokens)),
                        has_tokens ? "token" : "sample");
  if (figures.executed_flops > 0) text += fmt::format(", {}FLOPs executed", with_prefix(figures.executed_flops));
  return text;
}

}  // namespace

Figures figures(const Description& description) {
  description.validate();
  const Parallel& parallel = description.parallel;
  const auto layers = layers_of(description);
  const auto dealt = deal(layers, parallel.num_virtual_stages());
  const auto* transformer = std::get_if<Transformer>(&description.model);
  Figures result;
  result.num_npus = parallel.num_npus();
  const auto parameters = parameters_of(description.model);
  result.parameters = parameters.all;
  result.active_parameters = parameters.active;
  result.samples = parallel.micro_batch * parallel.micro_batches * parallel.num_replicas();
  result.tokens = result.samples * (transformer ? transformer->sequence : 1);
  const double stage_npus = result.num_npus / parallel[Axis::pp];
  double forward = 0;
  for (const Layer& layer : layers)
    for (const Op& op : layer.forward) forward += static_cast<double>(op.flops);
  result.model_flops = 3 * forward * parallel.micro_batches * stage_npus;
  for (std::uint32_t stage = 0; stage < parallel[Axis::pp]; ++stage) {
    result.stages.push_back(figures_of(parallel, dealt, stage));
    result.executed_flops += static_cast<double>(result.stages.back().flops) * stage_npus;
  }
  return result;
}

std::string placement_text(const Parallel& parallel) {
  std::string text;
  for (const Axis axis : parallel.placement)
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", axis_names[static_cast<std::size_t>(axis)], parallel[axis]);
  return fmt::format("[{}]", text);
}

std::string report(const Description& description, const Figures& figures) {
  const bool has_tokens = std::holds_alternative<Transformer>(description.model);
  std::string text = fmt::format("workload: {} parameters", readable(figures.parameters));
  if (figures.active_parameters != figures.parameters)
    text += fmt::format(" ({} active)", readable(figures.active_parameters));
  text += fmt::format("; {}, placement {}, innermost first\n", counted(figures.num_npus, "NPU"),
                      placement_text(description.parallel));
  text += fmt::format("step: {}\n", step_text(figures, has_tokens));
  const auto& stages = figures.stages;
  const auto& largest = *std::ranges::max_element(stages, {}, [](const auto& s) { return s.memory.total(); });
  text += fmt::format("memory of an NPU without buffers (stage {}, which has most): {}\n", &largest - stages.data(),
                      memory_text(largest.memory, true));
  if (description.parallel.offload.any())
    text += fmt::format("remote memory of it: {}\n", memory_text(largest.remote, false));
  text += "communication of an NPU of the stage that has most of it, and of all NPUs together:\n";
  std::map<std::string, std::pair<Traffic, double>> kinds;
  for (const auto& stage : stages)
    for (const auto& [kind, traffic] : stage.traffic) {
      auto& [most, all] = kinds[kind];
      if (traffic.bytes > most.bytes) most = traffic;
      all += static_cast<double>(traffic.bytes) * (figures.num_npus / static_cast<double>(stages.size()));
    }
  for (const auto& [kind, both] : kinds)
    text += fmt::format("  {:<29} {:>8} of {:>9}B in all {:>12}B\n", kind, both.first.count, readable(both.first.bytes),
                        with_prefix(both.second));
  return text;
}

}  // namespace orrery::workload
