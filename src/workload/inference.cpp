#include "inference.hpp"

#include <fmt/format.h>

#include <limits>
#include <string_view>
#include <utility>
#include <variant>

#include "model_states.hpp"
#include "orrery/base/error.hpp"
#include "requirements.hpp"
#include "tensor_lifetimes.hpp"

namespace orrery::workload {
namespace {

void require_possible_request(const Description& description) {
  const Request& request = description.parallel.pipeline.request;
  require_positive("workload.parallel.output-tokens", request.tokens);
  if (request.tokens > std::numeric_limits<std::uint32_t>::max())
    refuse("workload.parallel.output-tokens", request.tokens, "less than 2^32");
  if (request.samples == 1)
    refuse("workload.parallel.decode-samples", request.samples, "0 for all tokens, or 2 or more");
  const Description largest = largest_step(description);
  std::visit([&](const auto& model) { model.validate(largest.parallel); }, largest.model);
}

}  // namespace

void require_possible_inference(const Description& description) {
  const Parallel& parallel = description.parallel;
  if (!parallel.is_inference()) return;
  const auto refuse_unless = [](bool is_right, std::string_view key, std::string_view expected) {
    if (!is_right)
      throw Error(ErrorCode::bad_input, {.key = fmt::format("workload.parallel.{}", key)},
                  "a step of inference has no such thing", std::string(expected));
  };
  refuse_unless(std::holds_alternative<Transformer>(description.model), "phase",
                "training, or workload.model.kind: transformer");
  const Parallel defaults;
  const Pipeline& pipeline = parallel.pipeline;
  refuse_unless(parallel.sharding.zero == 0, "zero", "0");
  refuse_unless(!parallel.sharding.offload.any(), "offload", "[]");
  refuse_unless(pipeline.schedule == defaults.pipeline.schedule, "schedule",
                "1f1b: passes go through the stages in order");
  refuse_unless(parallel.interleaving == 1, "interleaving", "1");
  refuse_unless(!pipeline.delayed_weight_gradients, "delayed-weight-gradients", "false");
  refuse_unless(parallel.recompute == Recompute::none, "recompute", "none");
  if (pipeline.phase == Phase::prefill) return;
  refuse_unless(!parallel.sequence_parallel, "sp", "false: a sequence has one token in a step of decoding");
  refuse_unless(parallel[Axis::cp] == 1, "cp", "1: a sequence has one token in a step of decoding");
  if (pipeline.phase == Phase::request) require_possible_request(description);
}

Description step_of_token(const Description& request, std::uint64_t token) {
  Description step = request;
  step.parallel.pipeline.phase = token == 1 ? Phase::prefill : Phase::decode;
  if (token > 1) std::get<Transformer>(step.model).sequence += token - 2;
  return step;
}

Description largest_step(const Description& description) {
  const Pipeline& pipeline = description.parallel.pipeline;
  if (pipeline.phase != Phase::request) return description;
  return step_of_token(description, pipeline.request.tokens + 1);
}

void list_inference_memory(const Parallel& parallel, std::span<const Layer* const> layers, trace::Builder& builder,
                           NodeId node) {
  const MemoryUse local = model_states(parallel, layers).local;
  list_throughout(builder, "parameters", local.parameters, node);
  list_throughout(builder, "cache", local.cache, node);
}

}  // namespace orrery::workload
