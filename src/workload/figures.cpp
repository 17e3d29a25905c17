#include "orrery/workload/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "inference.hpp"
#include "kept_memory.hpp"
#include "layer.hpp"
#include "operators.hpp"
#include "orrery/base/text.hpp"
#include "orrery/workload/outline.hpp"
#include "orrery/workload/table_placement.hpp"
#include "placement.hpp"
#include "step.hpp"

namespace orrery::workload {
namespace {

using trace::NodeKind;

StageFigures figures_of(const Description& description, std::span<const std::span<const Layer>> assigned,
                        std::uint32_t stage) {
  const Parallel& parallel = description.parallel;
  const auto structure =
      parallel.pipeline.phase == Phase::request
          ? request_of_stage(description, stage, Time::zero(),
                             [&](std::uint64_t token) { return make_layers(step_of_token(description, token)); })
          : step_of_stage(parallel, assigned, stage);
  const auto& graph = structure.graph;
  StageFigures result;
  result.nodes = graph.num_nodes();
  const MemoryUses kept = memory_of(parallel, assigned, stage);
  result.local = kept.local;
  result.remote = kept.remote;
  const auto count = [&](const std::string& kind, std::uint64_t bytes) {
    auto& total = result.communication[kind];
    ++total.count;
    total.bytes += bytes;
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

/// Returns how many tokens of a sample a step reads; or makes, of decoding and requests.
std::uint64_t tokens_of_sample(const Description& description) {
  const Pipeline& pipeline = description.parallel.pipeline;
  if (pipeline.phase == Phase::decode) return 1;
  return pipeline.phase == Phase::request ? pipeline.request.tokens : tokens_per_sample(description.model);
}

std::string memory_text(const MemoryUse& memory, bool is_local) {
  const auto text = [](std::uint64_t bytes) { return size_text(bytes, 0); };
  if (memory.cache > 0)
    return fmt::format("parameters {}, cache {}: {}", text(memory.parameters), text(memory.cache),
                       text(memory.total()));
  return fmt::format("parameters {}, gradients {}, optimizer {}{}: {}", text(memory.parameters), text(memory.gradients),
                     text(memory.optimizer), is_local ? fmt::format(", activations {}", text(memory.activations)) : "",
                     text(memory.total()));
}

std::string readable(std::uint64_t value) { return with_prefix(static_cast<double>(value)); }

/// Returns "2 samples, 4.096 k tokens, 9.03 EFLOPs ..."; without FLOPs for a workload by times.
std::string step_text(const Figures& figures) {
  const bool has_tokens = figures.tokens > 0;
  std::string text = counted(figures.samples, "sample");
  if (has_tokens) text += fmt::format(", {} tokens", readable(figures.tokens));
  if (figures.model_flops > 0)
    text += fmt::format(
        ", {}FLOPs of the model ({}FLOPs for each {})", with_prefix(figures.model_flops),
        with_prefix(figures.model_flops / static_cast<double>(has_tokens ? figures.tokens : figures.samples)),
        has_tokens ? "token" : "sample");
  if (figures.executed_flops > 0) text += fmt::format(", {}FLOPs executed", with_prefix(figures.executed_flops));
  return text;
}

}  // namespace

StepSize size_of_step(const Description& description) {
  const Parallel& parallel = description.parallel;
  const std::uint64_t samples = parallel.micro_batch * parallel.micro_batches * parallel.num_replicas();
  return {samples, samples * tokens_of_sample(description)};
}

Figures figures_of_model(const Description& description) {
  description.validate();
  const Parallel& parallel = description.parallel;
  Figures result;
  result.num_npus = parallel.num_npus();
  const auto parameters = count_parameters(description.model);
  result.parameters = parameters.all;
  result.active_parameters = parameters.active;
  const StepSize size = size_of_step(description);
  result.samples = size.samples;
  result.tokens = size.tokens;
  const double stage_npus = result.num_npus / parallel[Axis::pp];
  double forward = 0;
  const auto add_forward = [&](std::span<const Layer> of_step) {
    for (const Layer& layer : of_step) {
      for (const Operator& op : layer.forward) forward += static_cast<double>(op.flops);
      forward -= static_cast<double>(layer.beside_model_flops);
    }
  };
  for (const std::uint64_t token : parallel.made_tokens()) add_forward(make_layers(step_of_token(description, token)));
  if (parallel.pipeline.phase != Phase::request) add_forward(make_layers(largest_step(description)));
  result.model_flops = (parallel.is_inference() ? 1 : 3) * forward * parallel.micro_batches * stage_npus;
  return result;
}

Figures figures(const Description& description) {
  Figures result = figures_of_model(description);
  const Parallel& parallel = description.parallel;
  const auto layers = make_layers(largest_step(description));
  const auto assigned = assign_layers(layers, parallel);
  const double stage_npus = result.num_npus / parallel[Axis::pp];
  for (std::uint32_t stage = 0; stage < parallel[Axis::pp]; ++stage) {
    result.stages.push_back(figures_of(description, assigned, stage));
    result.executed_flops += static_cast<double>(result.stages.back().flops) * stage_npus;
  }
  if (const auto* const dlrm = std::get_if<Dlrm>(&description.model)) {
    // Its layers are those of the mean NPU, but memory is that of the NPU that holds most.
    const TablePlacement tables(*dlrm, parallel);
    const auto held = [&](const TableShare& share) { return table_bytes(share, parallel).held; };
    result.stages.front().local.parameters += held(tables.share(tables.largest())) - held(tables.mean());
  }
  return result;
}

std::uint64_t least_peak_memory(const Description& description) {
  const auto layers = make_layers(description);
  return most_local_memory(description.parallel, assign_layers(layers, description.parallel));
}

std::string placement_text(const Parallel& parallel) {
  std::string text;
  for (const Axis axis : parallel.placement)
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", axis_names[static_cast<std::size_t>(axis)], parallel[axis]);
  return fmt::format("[{}]", text);
}

std::string report(const Description& description, const Figures& figures) {
  std::string text = fmt::format("workload: {} parameters", readable(figures.parameters));
  if (figures.active_parameters != figures.parameters)
    text += fmt::format(" ({} active)", readable(figures.active_parameters));
  text += fmt::format("; {}, placement {}, innermost first\n", counted(figures.num_npus, "NPU"),
                      placement_text(description.parallel));
  text += fmt::format("step: {}\n", step_text(figures));
  const auto& stages = figures.stages;
  const auto& largest = *std::ranges::max_element(stages, {}, [](const auto& s) { return s.local.total(); });
  text += fmt::format("memory of an NPU without buffers (stage {}, which has most): {}\n", &largest - stages.data(),
                      memory_text(largest.local, true));
  if (description.parallel.sharding.offload.any())
    text += fmt::format("remote memory of it: {}\n", memory_text(largest.remote, false));
  if (const auto* const dlrm = std::get_if<Dlrm>(&description.model))
    if (const TablePlacement tables(*dlrm, description.parallel); tables.shares().size() > 1)
      text += text_of(tables, description.parallel);
  text += "communication of an NPU of the stage that has most of it, and of all NPUs together:\n";
  std::map<std::string, std::pair<CommunicationTotal, double>> kinds;
  for (const auto& stage : stages)
    for (const auto& [kind, total] : stage.communication) {
      auto& [most, all] = kinds[kind];
      if (total.bytes > most.bytes) most = total;
      all += static_cast<double>(total.bytes) * (figures.num_npus / static_cast<double>(stages.size()));
    }
  for (const auto& [kind, both] : kinds)
    text += fmt::format("  {:<29} {:>8} of {:>9}B in all {:>12}B\n", kind, both.first.count, readable(both.first.bytes),
                        with_prefix(both.second));
  return text;
}

}  // namespace orrery::workload
