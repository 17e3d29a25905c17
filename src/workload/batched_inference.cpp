#include "orrery/workload/batched_inference.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "estimates.hpp"
#include "layer.hpp"
#include "operators.hpp"
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

void BatchedInference::add(StepPart& part, const Layer& layer, std::uint64_t count) const {
  for (Operator op : layer.forward) {
    if (op.operation == compute::Operation::Kind::attention) continue;
    if (op.kind == Operator::Kind::compute) {
      store_weights(op, numbers_.products, numbers_.weight_bytes);
      part.compute += estimated(op, compute_) * static_cast<std::int64_t>(count);
    } else {
      part.collectives.push_back({op.collective, Bytes(op.bytes), count});
    }
  }
}

StepPart BatchedInference::layers(std::uint64_t tokens) const {
  const Parallel parallel = this->parallel(Phase::decode, tokens);
  TransformerLayers layers(model_, parallel, {});
  std::array<std::uint64_t, 2> count = {}, example = {};  // [has experts]
  for (std::uint32_t i = 0; i < model_.layers; ++i) {
    const bool has_experts = model_.has_experts(i);
    if (count.at(has_experts)++ == 0) example.at(has_experts) = i;
  }
  StepPart part;
  if (model_.embedding.vocabulary > 0) add(part, layers.embedding(), 1);
  for (const bool has_experts : {false, true})
    if (count.at(has_experts) > 0)
      add(part, layers.block(static_cast<std::uint32_t>(example.at(has_experts))), count.at(has_experts));
  return part;
}

StepPart BatchedInference::output(std::uint64_t requests) const {
  StepPart part;
  if (model_.embedding.vocabulary == 0) return part;
  const Parallel parallel = this->parallel(Phase::decode, requests);
  add(part, TransformerLayers(model_, parallel, {}).output(), 1);
  return part;
}

Time BatchedInference::decoding_cores(std::uint64_t requests, std::uint64_t context) const {
  const Parallel parallel = this->parallel(Phase::decode, requests);
  const Operator core = TransformerLayers(model_, parallel, {}).decoding_core(context, context / requests);
  return estimated(core, compute_) * model_.layers;
}

Time BatchedInference::chunk_cores(std::uint64_t tokens, std::uint64_t context) const {
  const Parallel parallel = this->parallel(Phase::prefill, 1);
  Transformer chunk = model_;
  chunk.sequence = tokens;
  Time all;
  for (const Operator& op : TransformerLayers(chunk, parallel, {}).prefill_core(context))
    all += estimated(op, compute_);
  return all * model_.layers;
}

}  // namespace orrery::workload
