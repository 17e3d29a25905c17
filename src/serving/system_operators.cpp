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
        compute_(context.options.compute),
        collectives_(context.parallel.tp > 1 ? context.options.collectives(context.npus, context.parallel.tp)
                                             : nullptr),
        inference_(*context.model, context.parallel.tp,
                   {.products = context.options.products,
                    .weight_bytes = context.weights->bytes,
                    .cache = *precision_of_cache(context.kv)},
                   *compute_) {}

  Time duration(const StepShape& shape, std::uint64_t) override {
    const std::uint64_t sequences = shape.sequences();
    Time core;
    if (shape.decodes > 0) core += inference_.decoding_core(shape.decodes, shape.context_sum);
    for (const StepShape::Chunk& chunk : shape.chunks) core += inference_.chunk_core(chunk.tokens, chunk.context);
    const auto [layers, are_new] = layers_.try_emplace(padded(graph_sizes_, shape.tokens()));
    if (are_new)
      for (const workload::StepPart& part : inference_.layers(layers->first)) layers->second.push_back(timed(part));
    const auto [output, is_new] = outputs_.try_emplace(sequences);
    if (is_new)
      if (const auto part = inference_.output(sequences)) output->second.push_back(timed(*part));
    Time all = host_.step + host_.sequence * static_cast<std::int64_t>(sequences);
    for (const Parts* const parts : {&layers->second, &output->second})
      for (const Part& part : *parts) {
        const Time compute = part.has_attention ? part.compute + core : part.compute;
        all += (std::max(compute, host_.layer) + part.collectives) * part.count;
      }
    if (all == Time::max())
      throw Error(ErrorCode::bad_input, {.key = "serving.step.model"},
                  "found a step that takes longer than a run can simulate",
                  "a faster system, or fewer tokens in a step");
    return std::max(all, Time::from_ps(1));
  }

 private:
  /// Equal layers, and the times of each.
  struct Part {
    std::int64_t count = 1;
    Time compute, collectives;
    bool has_attention = false;
  };
  using Parts = std::vector<Part>;

  Part timed(const workload::StepPart& part) const {
    Part made{static_cast<std::int64_t>(part.count), part.compute, {}, part.has_attention};
    for (const workload::GroupCollective& one : part.collectives)
      made.collectives += collectives_->duration(one.kind, one.bytes);
    return made;
  }

  std::vector<std::uint64_t> graph_sizes_;
  HostTimes host_;
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
      const auto refuse = [](const char* key, const std::string& found, const std::string& expected) {
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
        refuse("serving.instances.parallel.ep",
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
          refuse("serving.instances.parallel.tp", fmt::format("found {}", context.parallel.tp),
                 fmt::format("a divisor of the {} {}", count, what));
      return std::make_shared<SystemOperators>(context);
    }};

}  // namespace orrery::serving
