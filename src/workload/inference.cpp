#include "inference.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <variant>

#include "model_states.hpp"
#include "orrery/base/error.hpp"
#include "tensor_lifetimes.hpp"

namespace orrery::workload {

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
}

void list_inference_memory(const Parallel& parallel, std::span<const Layer* const> layers, trace::Builder& builder,
                           NodeId node) {
  const MemoryUse local = model_states(parallel, layers).local;
  list_throughout(builder, "parameters", local.parameters, node);
  list_throughout(builder, "cache", local.cache, node);
}

}  // namespace orrery::workload
