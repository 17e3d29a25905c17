#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/compute/model.hpp"
#include "orrery/serving/pipeline.hpp"
#include "orrery/serving/step_options.hpp"
#include "orrery/workload/batched_inference.hpp"
#include "padding.hpp"

namespace orrery::serving {
namespace {

using workload::Precision;

/// Returns the precision in which keys and values of a format are moved.
std::optional<Precision> precision_of_cache(const FormatName& format) {
  const std::string_view name = format.name();
  if (name == "bf16") return Precision::bf16;
  if (name == "fp8" || name == "int8") return Precision::fp8;  // both have a byte
  if (name == "fp4") return Precision::nvfp4;
  return {};
}

/// The operators of a transformer take what the compute model of the system estimates, and collectives what they take
/// alone on the NPUs of the instance.
class SystemOperators final : public StepModel {
 public:
  explicit SystemOperators(const StepContext& context)
      : graph_sizes_(context.options.graph_sizes),
        host_(context.options.host),
        model_(*context.model),
        compute_(context.options.compute),
        collectives_(context.parallel.tp > 1
                         ? context.options.collectives(context.npus, context.parallel, context.entry)
                         : nullptr),
        inference_(*context.model, context.parallel.tp,
                   {.products = context.options.products,
                    .weight_bytes = context.weights->bytes,
                    .cache = *precision_of_cache(context.kv)},
                   *compute_) {}

  Time duration(const StepShape& shape, std::uint64_t) override {
    Time all;
    of_stages(shape, std::span(&all, 1));
    return all;
  }

  void stage_durations(std::span<const StepShape* const> shapes, std::uint64_t, std::span<Time> stages) override {
    std::ranges::fill(stages, Time::from_ps(1));
    std::vector<Time> own(stages.size());
    for (const StepShape* const shape : shapes) {
      of_stages(shape->tokens() == 0 ? idle_shape() : *shape, own);
      for (std::size_t s = 0; s < own.size(); ++s) stages[s] = std::max(stages[s], own[s]);
    }
  }

  std::vector<StagePlan> plan(std::span<const StepShape* const> shapes, std::uint64_t, std::uint32_t stages) override {
    // Data-parallel ranks are alike but for their requests: the one with most tokens goes for all.
    const StepShape& shape = **std::ranges::max_element(
        shapes, [](const StepShape* a, const StepShape* b) { return a->tokens() < b->tokens(); });
    const std::uint64_t sequences = shape.sequences();
    const Time core = core_of(shape);
    std::vector<StagePlan> plans(stages);
    plans.front().push_back(
        {.phases = {{.compute = host_.step + host_.sequence * static_cast<std::int64_t>(sequences)}}});
    for (const workload::StepPart& part : inference_.layers(padded(graph_sizes_, shape.tokens())))
      for (std::uint32_t s = 0; s < stages; ++s) {
        const std::int64_t count = part.has_attention ? count_in_stage(part.has_experts, s, stages)
                                                      : static_cast<std::int64_t>(s == 0 ? part.count : 0);
        if (count > 0) plans[s].push_back(section_of(part, count, core));
      }
    if (const auto part = inference_.output(sequences))
      plans.back().push_back(section_of(*part, static_cast<std::int64_t>(part->count), core));
    return plans;
  }

 private:
  /// Returns the core of attention of a layer.
  Time core_of(const StepShape& shape) const {
    Time core;
    if (shape.decodes > 0) core += inference_.decoding_core(shape.decodes, shape.context_sum);
    for (const StepShape::Chunk& chunk : shape.chunks) core += inference_.chunk_core(chunk.tokens, chunk.context);
    return core;
  }

  /// Returns equal layers with the computing between their collectives. What the host takes longer comes first.
  PlanSection section_of(const workload::StepPart& part, std::int64_t count, Time core) const {
    PlanSection section{.count = count};
    const Time all = part.has_attention ? part.compute + core : part.compute;
    Time rest = all;
    for (const workload::GroupCollective& one : part.collectives) {
      const Time compute = one.has_core_before ? one.compute_before + core : one.compute_before;
      rest -= compute;
      section.phases.push_back({.compute = compute, .communicates = true, .kind = one.kind, .bytes = one.bytes});
    }
    section.phases.push_back({.compute = rest});
    section.phases.front().compute += std::max(Time(), host_.layer - all);
    return section;
  }

  /// Returns in `stages` the time of each stage.
  void of_stages(const StepShape& shape, std::span<Time> stages) {
    const std::uint64_t sequences = shape.sequences();
    const Time core = core_of(shape);
    const auto [layers, are_new] = layers_.try_emplace(padded(graph_sizes_, shape.tokens()));
    if (are_new)
      for (const workload::StepPart& part : inference_.layers(layers->first)) layers->second.push_back(timed(part));
    const auto [output, is_new] = outputs_.try_emplace(sequences);
    if (is_new)
      if (const auto part = inference_.output(sequences)) output->second.push_back(timed(*part));
    const auto time_of = [&](const Part& part) {
      const Time compute = part.has_attention ? part.compute + core : part.compute;
      return std::max(compute, host_.layer) + part.collectives;
    };
    std::ranges::fill(stages, Time());
    stages[0] = host_.step + host_.sequence * static_cast<std::int64_t>(sequences);
    for (const Part& part : layers->second)
      for (std::size_t s = 0; s < stages.size(); ++s)
        if (part.has_attention)
          stages[s] += time_of(part) * count_in_stage(part.has_experts, s, stages.size());
        else if (s == 0)
          stages[s] += time_of(part) * part.count;
    for (const Part& part : output->second) stages.back() += time_of(part) * part.count;
    for (Time& stage : stages) {
      if (stage == Time::max())
        throw Error(ErrorCode::bad_input, {.key = "serving.step.model"},
                    "found a step that takes longer than a run can simulate",
                    "a faster system, or fewer tokens in a step");
      stage = std::max(stage, Time::from_ps(1));
    }
  }

  /// Returns how many layers of a stage have experts, or have none.
  std::int64_t count_in_stage(bool has_experts, std::size_t stage, std::size_t stages) const {
    const auto s = static_cast<std::uint32_t>(stage), all = static_cast<std::uint32_t>(stages);
    std::int64_t count = 0;
    for (std::uint32_t i = first_layer_of(model_.layers, all, s); i < first_layer_of(model_.layers, all, s + 1); ++i)
      count += model_.has_experts(i) == has_experts ? 1 : 0;
    return count;
  }

  /// Equal layers, and the times of each.
  struct Part {
    std::int64_t count = 1;
    Time compute, collectives;
    bool has_attention = false, has_experts = false;
  };
  using Parts = std::vector<Part>;

  Part timed(const workload::StepPart& part) const {
    Part made{static_cast<std::int64_t>(part.count), part.compute, {}, part.has_attention, part.has_experts};
    for (const workload::GroupCollective& one : part.collectives)
      made.collectives += collectives_->duration(one.kind, one.bytes);
    return made;
  }

  std::vector<std::uint64_t> graph_sizes_;
  HostTimes host_;
  workload::Transformer model_;
  std::shared_ptr<const compute::ComputeModel> compute_;
  std::shared_ptr<CollectiveTimes> collectives_;  ///< null: there are none
  workload::BatchedInference inference_;
  std::unordered_map<std::uint64_t, Parts> layers_, outputs_;  ///< parts of steps by tokens, and by requests
};

}  // namespace

extern const StepModelType system_operators;
constinit const StepModelType system_operators{
    .name = "system",
    .help = "operators that take what system.compute says: products, a table of kernels or the roofline",
    .needs_model = true,
    .uses_network = true,
    .make = [](const StepContext& context) -> std::shared_ptr<StepModel> {
      const auto refuse = [](const std::string& key, const std::string& found, const std::string& expected) {
        throw Error(ErrorCode::bad_input, {.key = key}, found, expected);
      };
      if (!context.options.compute)
        refuse("serving.step.model",
               "found system, but the file has no system whose compute model estimates operations",
               "system.compute.model: products, table or roofline, or another model of steps");
      if (!precision_of_cache(context.kv))
        refuse("serving.precision.kv", fmt::format("found {} with step.model: system", context.kv.name()),
               "bf16, fp8, int8 or fp4");
      if (context.parallel.ep > context.parallel.tp)
        refuse(context.entry + ".parallel.ep",
               fmt::format("found {} with step.model: system, which has no exchange between data-parallel ranks",
                           context.parallel.ep),
               fmt::format("{}, as tp, or step.model: profile", context.parallel.tp));
      const workload::Transformer& model = *context.model;
      const std::pair<std::uint64_t, const char*> divided[] = {
          {model.hidden, "values of the hidden width"},
          {model.mlp_width(), "values of the MLP's width (ffn)"},
          {model.dense_width(), "values of the MLP's width (dense-ffn)"},
          {model.embedding.vocabulary, "words of the vocabulary"}};
      for (const auto& [count, what] : divided)
        if (count % context.parallel.tp != 0)
          refuse(context.entry + ".parallel.tp", fmt::format("found {}", context.parallel.tp),
                 fmt::format("a divisor of the {} {}", count, what));
      return std::make_shared<SystemOperators>(context);
    }};

}  // namespace orrery::serving
