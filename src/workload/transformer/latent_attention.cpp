#include "transformer/layers.hpp"

namespace orrery::workload {

using trace::CollectiveKind;
using enum Operator::Kind;

/// Returns the product that makes the heads' keys and values of the small vectors of this many tokens.
Operator TransformerLayers::up_keys(std::uint64_t tokens) const {
  return operators_.product("attention.up_keys", tokens, model_.latent.key_value,
                            model_.attention.heads / tp_ * (model_.head_width() + model_.value_head()));
}

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). A product makes small vectors of each
/// token, one for queries and one for keys and values; further products make the heads of these. The first one is not
/// divided by tp, so that it is done of the NPU's own tokens, and small vectors are gathered.
TransformerLayers::Inputs TransformerLayers::latent_inputs() {
  const Transformer::Latent& latent = model_.latent;
  const std::uint64_t ranks = latent.query + latent.key_value + latent.rotary;
  const Operator down = operators_.product("attention.down", own_tokens_, hidden_, ranks);
  const Operator up_keys = this->up_keys(tokens_);
  const Operator up_queries = latent.query > 0
                                  ? operators_.product("attention.up_queries", tokens_, latent.query, query_)
                                  : operators_.product("attention.queries", tokens_, hidden_, query_);
  const std::uint64_t normed = own_tokens_ * (latent.query + latent.key_value) * bytes_;

  Inputs inputs;
  auto& forward = inputs.forward;
  forward = {down, Operators::elementwise("attention.latent_norm", 2 * normed)};
  if (parallel_.sequence_parallel)
    add_collective(forward, parallel_, collective, "attention.latent.all_gather", CollectiveKind::all_gather,
                   GroupKind::tensor, own_tokens_ * ranks * bytes_);
  forward.push_back(up_keys);
  if (latent.query > 0)
    forward.push_back(up_queries);
  else
    gather_into(forward, "attention.all_gather", up_queries);
  add_positions(inputs);
  if (recomputed_.latent) {
    inputs.again = {Operators::again(up_keys), Operators::again(up_queries)};
    if (recomputed_.norms) inputs.again.insert(inputs.again.begin(), forward[1]);
    for (const Operator& op : forward)
      if (op.kind == compute && op.operation == compute::Operation::Kind::elementwise && &op != &forward[1])
        inputs.again.push_back(op);
  } else if (recomputed_.norms) {
    inputs.again = {forward[1]};
  }

  auto& backward = inputs.backward;
  backward.push_back({.kind = wait});
  if (latent.query > 0)
    backward.push_back(Operators::backward("attention.up_queries", up_queries));
  else
    sum_of(backward, Operators::backward("attention.queries", up_queries), "attention.sum");
  backward.push_back(Operators::backward("attention.up_keys", up_keys));
  add_sum(backward, collective, "attention.latent.sum", tokens_ * ranks * bytes_);
  backward.push_back(Operators::elementwise("attention.latent_norm", 4 * normed));
  backward.push_back(Operators::backward("attention.down", down));
  return inputs;
}

}  // namespace orrery::workload
