#include "transformer/layers.hpp"

namespace orrery::workload {

using trace::CollectiveKind;
using enum Operator::Kind;

Layer TransformerLayers::embedding() {
  Layer layer{.name = "embedding", .is_beside_blocks = true};
  // The vectors of a token and of its position are added. Each NPU of the tensor group finds its share of the tokens.
  const std::uint64_t sums = tokens_ * hidden_ / tp_;
  layer.forward = {{.name = "lookup", .flops = sums, .bytes = 2 * tokens_ * hidden_ * bytes_}};
  sum(layer.forward, "sum");
  gather(layer.backward, "gradient.all_gather");
  layer.backward.push_back({.name = "update", .flops = 2 * sums, .bytes = 3 * tokens_ * hidden_ * bytes_});
  layer.dense = model_.embedding.vocabulary / tp_ * hidden_;
  if (model_.embedding.tied) layer.of_dense.tied = layer.dense;
  if (model_.embedding.learned_positions) layer.dense += model_.sequence * hidden_;
  layer.activations = mask_ * own_tokens_ * hidden_;
  layer.output = own_tokens_ * hidden_ * bytes_;
  return layer;
}

/// Returns the bytes that the loss and its gradient move for each score. A loss of separate kernels casts scores to
/// fp32, finds the largest, subtracts it, takes the exponential, sums and divides; its gradient scales what is left and
/// casts it back (Megatron-LM, vocab_parallel_cross_entropy).
std::pair<std::uint64_t, std::uint64_t> TransformerLayers::loss_bytes() const {
  if (parallel_.extras.fused_loss) return {bytes_ + 4, bytes_ + 4};
  return {bytes_ + 4 + 4 + 8 + 8 + 4 + 8, 8 + 4 + bytes_};
}

/// Adds the product with the words, the loss of the tokens, and their backward pass.
void TransformerLayers::add_logits(Layer& layer) {
  const std::uint64_t words = model_.embedding.vocabulary / tp_;
  const Operator logits = operators_.product("logits", tokens_, hidden_, words);
  layer.forward.push_back(own("norm", 2 * bytes_));
  gather(layer.forward, "all_gather");
  layer.forward.push_back(logits);
  const auto [loss, gradient] = loss_bytes();
  layer.forward.push_back(Operators::elementwise("loss", tokens_ * words * loss));
  for (const char* name : {"loss.largest", "loss.sum", "loss.target"})  // of each token, in fp32
    add_collective(layer.forward, parallel_, collective, name, CollectiveKind::all_reduce, GroupKind::tensor,
                   tokens_ * 4);
  std::vector<Operator> backward;
  gather(backward, "input.all_gather", asynchronous);
  backward.push_back(Operators::elementwise("loss", tokens_ * words * gradient));
  backward.push_back({.kind = wait});
  backward.push_back(Operators::backward("logits", logits));
  sum(backward, "sum");
  backward.push_back(own("norm", 4 * bytes_));
  layer.backward.insert(layer.backward.begin(), backward.begin(), backward.end());
  layer.activations += 2 * own_tokens_ * hidden_ * bytes_ + tokens_ * words * 4;
}

/// Adds a block that predicts a further token (DeepSeek-V3, arXiv 2412.19437, section 2.2): it takes what the model has
/// made of a token and the embedding of the next one, both normed, by a product of twice the width.
void TransformerLayers::add_further_token(Layer& layer) {
  const Operator merge = operators_.product("merge", own_tokens_, 2 * hidden_, hidden_);
  const Layer block = this->block(model_.layers - 1);
  layer.forward.insert(layer.forward.end(), {own("merge.norm", 4 * bytes_), merge});
  layer.forward.insert(layer.forward.end(), block.forward.begin(), block.forward.end());
  std::vector<Operator> backward = block.recomputation;
  backward.insert(backward.end(), block.backward.begin(), block.backward.end());
  backward.insert(backward.end(), {Operators::backward("merge", merge), own("merge.norm", 8 * bytes_)});
  layer.backward.insert(layer.backward.begin(), backward.begin(), backward.end());
  layer.dense += block.dense + 2 * hidden_ * hidden_ + 3 * norm_parameters(model_);
  layer.of_dense.norms += block.of_dense.norms + 3 * norm_parameters(model_);
  layer.experts += block.experts;
  layer.activations += block.activations + block.recomputed + 3 * own_tokens_ * hidden_ * bytes_;
  add_logits(layer);
}

/// Returns the output layer of inference: of each sequence, the last token's product with the words, of which one is
/// chosen among all NPUs of the tensor group.
Layer TransformerLayers::next_words() {
  Layer layer{.name = "output", .is_beside_blocks = true};
  const std::uint64_t words = model_.embedding.vocabulary / tp_, sequences = parallel_.micro_batch;
  layer.forward.push_back(Operators::elementwise("norm", 2 * sequences * hidden_ * bytes_));
  layer.forward.push_back(operators_.product("logits", sequences, hidden_, words));
  add_collective(layer.forward, parallel_, collective, "logits.all_gather", CollectiveKind::all_gather,
                 GroupKind::tensor, sequences * words * bytes_);
  layer.dense = (model_.embedding.tied && !has_ends_apart(parallel_) ? 0 : words * hidden_) + norm_parameters(model_);
  return layer;
}

Layer TransformerLayers::output() {
  if (parallel_.is_inference()) return next_words();
  Layer layer{.name = "output", .is_beside_blocks = true};
  add_logits(layer);
  for (std::uint32_t i = 0; i < model_.further_tokens; ++i) add_further_token(layer);
  const std::uint64_t words = model_.embedding.vocabulary / tp_;
  const bool has_own = !model_.embedding.tied || has_ends_apart(parallel_);
  layer.dense += (has_own ? words * hidden_ : 0) + norm_parameters(model_);
  layer.of_dense.norms += norm_parameters(model_);
  if (model_.embedding.tied && has_own) layer.of_dense.tied = words * hidden_;
  layer.output = 0;
  return layer;
}

}  // namespace orrery::workload
