#include "orrery/workload/batched_inference.hpp"

#include <cmath>
#include <utility>

#include "estimates.hpp"
#include "layer.hpp"
#include "operators.hpp"
#include "requirements.hpp"
#include "transformer/layers.hpp"

namespace orrery::workload {
namespace {

/// Replaces the bytes of the weights of a product by those that they take in memory.
void store_weights(Operator& op, Precision products, double weight_bytes) {
  if (!op.has_weights || weight_bytes == operand_size(products)) return;
  const std::uint64_t weights = op.shape.copies * op.shape.k * op.shape.n;
  op.bytes += static_cast<std::uint64_t>(std::ceil(weight_bytes * static_cast<double>(weights)));
  op.bytes -= operand_bytes(products, weights);
}

}  // namespace

BatchedInference::BatchedInference(Transformer model, std::uint32_t tp, const StoredNumbers& numbers,
                                   const compute::ComputeModel& compute)
    : model_(std::move(model)), tp_(tp), numbers_(numbers), compute_(compute) {}

Parallel BatchedInference::parallel(Phase phase, std::uint64_t samples) const {
  Parallel made;
  made[Axis::tp] = tp_;
  made.micro_batch = samples;
  made.precision = numbers_.products;
  made.pipeline.phase = phase;
  made.pipeline.cache_precision = numbers_.cache;
  return made;
}

StepPart BatchedInference::part_of(const Layer& layer, std::uint64_t count) const {
  StepPart part;
  part.count = count;
  Time before;  // compute operators since the last collective
  bool has_core = false;
  for (Operator op : layer.forward) {
    if (op.operation == compute::Operation::Kind::attention) {
      part.has_attention = has_core = true;
    } else if (op.kind == Operator::Kind::compute) {
      store_weights(op, numbers_.products, numbers_.weight_bytes);
      const Time time = estimated(op, compute_);
      part.compute += time;
      before += time;
    } else {
      part.collectives.push_back({op.collective, Bytes(op.bytes), std::exchange(before, Time()), has_core});
      has_core = false;
    }
  }
  return part;
}

std::vector<StepPart> BatchedInference::layers(std::uint64_t tokens) const {
  const Parallel parallel = this->parallel(Phase::decode, tokens);
  TransformerLayers layers(model_, parallel, {});
  std::vector<StepPart> parts;
  if (model_.embedding.vocabulary > 0) parts.push_back(part_of(layers.embedding(), 1));
  std::uint32_t with_experts = 0;
  for (std::uint32_t i = 0; i < model_.layers; ++i) with_experts += model_.has_experts(i) ? 1 : 0;
  for (const bool has_experts : {false, true}) {
    const std::uint32_t count = has_experts ? with_experts : model_.layers - with_experts;
    std::uint32_t example = 0;
    while (count > 0 && model_.has_experts(example) != has_experts) ++example;
    if (count == 0) continue;
    parts.push_back(part_of(layers.block(example), count));
    parts.back().has_experts = has_experts;
  }
  return parts;
}

std::optional<StepPart> BatchedInference::output(std::uint64_t requests) const {
  if (model_.embedding.vocabulary == 0) return {};
  const Parallel parallel = this->parallel(Phase::decode, requests);
  return part_of(TransformerLayers(model_, parallel, {}).output(), 1);
}

Time BatchedInference::decoding_core(std::uint64_t requests, std::uint64_t context) const {
  const Parallel parallel = this->parallel(Phase::decode, requests);
  return estimated(TransformerLayers(model_, parallel, {}).decoding_core(context, context / requests), compute_);
}

Time BatchedInference::chunk_core(std::uint64_t tokens, std::uint64_t context) const {
  const Parallel parallel = this->parallel(Phase::prefill, 1);
  Transformer chunk = model_;
  chunk.sequence = tokens;
  require_countable("serving.scheduler.max-tokens", "FLOPs in a chunk",
                    8 * static_cast<double>(tokens) * static_cast<double>(tokens + context) *
                        static_cast<double>(model_.query_width()));
  Time all;
  for (Operator op : TransformerLayers(chunk, parallel, {}).prefill_core(context)) {
    store_weights(op, numbers_.products, numbers_.weight_bytes);
    all += estimated(op, compute_);
  }
  return all;
}

}  // namespace orrery::workload
