#include "transformer/layers.hpp"

namespace orrery::workload {

using trace::CollectiveKind;
using enum Operator::Kind;

/// The core of attention computes the scores of the NPU's own tokens with all tokens of the sequence, the softmax and
/// the weighted values: 4 s FLOPs for each query value.
std::vector<Operator> TransformerLayers::core_forward() const {
  if (is_decode()) return {decoding_core(tokens_ * model_.sequence, model_.sequence)};
  return prefill_core(0);
}

/// A fused causal core leaves out the half of the sequence's own scores that the mask hides; one of separate products
/// computes it. With latent attention the heads' keys and values of the cache are made again of its small vectors.
std::vector<Operator> TransformerLayers::prefill_core(std::uint64_t context) const {
  const std::uint64_t own_pairs = tokens_ * model_.sequence, old_pairs = tokens_ * context;
  const std::uint64_t for_scores = 2 * (own_pairs + old_pairs) * query_,
                      for_values = 2 * (own_pairs + old_pairs) * result_;
  const std::uint64_t all_tokens = parallel_.micro_batch * model_.sequence;
  const std::uint64_t queries = tokens_ * query_ * bytes_, results = tokens_ * result_ * bytes_;
  const auto of_cache = [this](std::uint64_t v) {
    return model_.is_latent() ? v * bytes_ : operand_bytes(precision_of_cache(parallel_), v);
  };
  const std::uint64_t keys = all_tokens * keys_ * bytes_ + of_cache(context * keys_);
  const std::uint64_t values = all_tokens * values_ * bytes_ + of_cache(context * values_);
  const compute::ProductShape scores_of_head = {
      .m = tokens_ / parallel_.micro_batch,
      .k = (model_.query_head() + model_.value_head()) / 2,
      .n = context + model_.sequence,
      .copies = parallel_.micro_batch * (model_.attention.heads / tp_),
  };
  std::vector<Operator> made;
  if (context > 0 && model_.is_latent()) made.push_back(up_keys(context));
  if (model_.attention.fused) {
    const std::uint64_t hidden_flops = model_.attention.causal ? own_pairs * (query_ + result_) : 0;
    made.push_back({.name = "attention.core",
                    .flops = for_scores + for_values - hidden_flops,
                    .bytes = queries + results + keys + values,
                    .operation = compute::Operation::Kind::attention,
                    .shape = scores_of_head,
                    .is_causal = model_.attention.causal && context == 0});
    return made;
  }
  const std::uint64_t scores = (own_pairs + old_pairs) * (model_.attention.heads / tp_);
  using compute::Operation;
  made.insert(made.end(),
              {Operator{.name = "attention.scores",
                        .flops = for_scores,
                        .bytes = queries + keys + scores * bytes_,
                        .operation = Operation::Kind::product,
                        .shape = scores_of_head},
               Operators::elementwise("attention.softmax", scores * (model_.dropout ? 4 * bytes_ + 1 : 2 * bytes_)),
               Operator{.name = "attention.values",
                        .flops = for_values,
                        .bytes = results + values + scores * bytes_,
                        .operation = Operation::Kind::product,
                        .shape = {scores_of_head.m, scores_of_head.n, scores_of_head.k, scores_of_head.copies}}});
  return made;
}

/// Returns how many values of a token and layer the NPU keeps for the tokens after it.
std::uint64_t TransformerLayers::cache_width() const {
  return model_.is_latent() ? model_.latent.key_value + model_.latent.rotary : keys_ + values_;
}

/// Returns the core of attention for one token of each sequence, which reads the cache. With latent attention queries
/// are compared with the small vectors themselves, whose products with the heads' matrices are those of `up_keys`.
Operator TransformerLayers::decoding_core(std::uint64_t pairs, std::uint64_t context) const {
  const std::uint64_t heads = model_.attention.heads / tp_, small = model_.latent.key_value;
  const std::uint64_t scored = model_.is_latent() ? heads * (small + model_.latent.rotary) : query_;
  const std::uint64_t summed = model_.is_latent() ? heads * small : result_;
  return {
      .name = "attention.core",
      .flops = 2 * pairs * (scored + summed),
      .bytes =
          operand_bytes(precision_of_cache(parallel_), pairs * cache_width()) + tokens_ * (query_ + result_) * bytes_,
      .operation = compute::Operation::Kind::attention,
      .shape = {.m = 1, .k = (model_.query_head() + model_.value_head()) / 2, .n = context, .copies = tokens_ * heads}};
}

std::vector<Operator> TransformerLayers::core_backward() const {
  if (parallel_.is_inference()) return {};
  const auto forward = core_forward();
  if (model_.attention.fused)  // computes the scores again
    return {{.name = "attention.core",
             .flops = forward[0].flops / 2 * 5,
             .bytes = 2 * forward[0].bytes,
             .operation = forward[0].operation,
             .shape = forward[0].shape,
             .is_backward = true,
             .is_causal = model_.attention.causal}};
  return {Operators::backward("attention.values", forward[2]), Operators::backward("attention.softmax", forward[1]),
          Operators::backward("attention.scores", forward[0])};
}

/// Queries, keys and values are one product of the tokens' values.
TransformerLayers::Inputs TransformerLayers::plain_inputs() {
  const Operator qkv = operators_.product("attention.qkv", tokens_, hidden_, query_ + keys_ + values_);
  Inputs inputs;
  gather_into(inputs.forward, "attention.all_gather", qkv);
  add_positions(inputs);
  inputs.backward.push_back({.kind = wait});
  sum_of(inputs.backward, Operators::backward("attention.qkv", qkv), "attention.sum");
  return inputs;
}

/// Adds the norms of the heads of queries and keys, and the rotation by their positions.
void TransformerLayers::add_positions(Inputs& inputs) const {
  const std::uint64_t turned = 2 * tokens_ * (query_ + keys_) * bytes_;
  if (model_.attention.head_norms) {
    inputs.forward.push_back(Operators::elementwise("attention.head_norm", turned));
    inputs.backward.insert(inputs.backward.begin(), Operators::elementwise("attention.head_norm", 2 * turned));
  }
  if (!model_.attention.rotary) return;
  const Operator rotation = Operators::elementwise("attention.rotary", turned);
  inputs.forward.push_back(rotation);
  inputs.backward.insert(inputs.backward.begin(), rotation);
}

void TransformerLayers::attention(Layer& layer) {
  const Inputs inputs = model_.is_latent() ? latent_inputs() : plain_inputs();
  const Operator projection = operators_.product("attention.projection", tokens_, result_, hidden_);
  const Operator residual = own("attention.residual", 3 * bytes_ + mask_);
  const bool is_ring = parallel_.overlap.context == ContextExchange::ring;
  const auto append = [](std::vector<Operator>& to, const std::vector<Operator>& ops) {
    to.insert(to.end(), ops.begin(), ops.end());
  };
  const auto gather_keys = [&](std::vector<Operator>& to, Operator::Kind kind) {
    add_collective(to, parallel_, kind, "attention.keys.all_gather", CollectiveKind::all_gather, GroupKind::context,
                   tokens_ * keys_ * bytes_);
    add_collective(to, parallel_, kind, "attention.values.all_gather", CollectiveKind::all_gather, GroupKind::context,
                   tokens_ * values_ * bytes_);
  };
  const auto sum_keys = [&](std::vector<Operator>& to, Operator::Kind kind) {
    const std::uint64_t all = tokens_ * parallel_[Axis::cp] * bytes_;
    add_collective(to, parallel_, kind, "attention.keys.reduce_scatter", CollectiveKind::reduce_scatter,
                   GroupKind::context, all * keys_);
    add_collective(to, parallel_, kind, "attention.values.reduce_scatter", CollectiveKind::reduce_scatter,
                   GroupKind::context, all * values_);
  };

  auto& forward = layer.forward;
  forward.push_back(own("attention.norm", 2 * bytes_));
  append(forward, inputs.forward);
  gather_keys(forward, is_ring ? asynchronous : collective);
  append(forward, core_forward());
  if (is_ring) forward.push_back({.kind = wait});
  sum_of(forward, projection, "attention.sum");
  forward.push_back(residual);

  auto& backward = layer.backward;
  backward.push_back(own("attention.residual", 2 * bytes_ + mask_));
  gather_gradient_into(backward, "attention.gradient.all_gather", "attention.input.all_gather",
                       Operators::backward("attention.projection", projection));
  if (parallel_.recompute == Recompute::selective && !model_.attention.fused) append(backward, core_forward());
  if (recomputed_.norms) backward.push_back(own("attention.norm", 2 * bytes_));
  append(backward, inputs.again);
  if (is_ring) {  // keys and values go around again, and their gradients with them
    gather_keys(backward, asynchronous);
    sum_keys(backward, asynchronous);
  }
  append(backward, core_backward());
  if (!is_ring) sum_keys(backward, collective);
  append(backward, inputs.backward);
  backward.push_back(own("attention.norm", 4 * bytes_));

  const std::uint64_t copies = model_.kv_copies(parallel_[Axis::tp]);
  layer.beside_model_flops = 2 * tokens_ * (keys_ + values_) * (hidden_ / copies) * (copies - 1);
  if (model_.attention.causal && !model_.attention.fused && !is_decode())
    layer.beside_model_flops += tokens_ * model_.sequence * (query_ + result_);
  layer.of_dense.norms += norm_parameters(model_);
  layer.dense += attention_parameters();
}

/// Returns the NPU's parameters of the attention of a block, with its norm.
std::uint64_t TransformerLayers::attention_parameters() const {
  const std::uint64_t heads = model_.attention.head_norms ? 2 * model_.head_width() : 0;
  if (model_.is_latent()) return model_.latent_parameters(tp_) + heads + norm_parameters(model_);
  const std::uint64_t biases = model_.biases ? query_ + keys_ + values_ + hidden_ : 0;
  return hidden_ * (query_ + keys_ + values_ + result_) + biases + heads + norm_parameters(model_);
}

}  // namespace orrery::workload
