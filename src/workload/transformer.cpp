#include "transformer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ops.hpp"
#include "refuse.hpp"

namespace orrery::workload {
namespace {

using trace::CollectiveKind;
using enum Op::Kind;

/// Biases and both vectors of a norm go together, as in GPT.
std::uint64_t norm_parameters(const Transformer& model) { return model.hidden * (model.biases ? 2 : 1); }

std::uint64_t matrices_into(const Transformer& model) { return model.gated ? 2 : 1; }

/// Makes the layers; all sizes are those of one NPU and one micro-batch.
class Maker {
 public:
  Maker(const Transformer& model, const Parallel& parallel)
      : model_(model),
        parallel_(parallel),
        ops_(parallel),
        tp_(parallel[Axis::tp]),
        tokens_(parallel.micro_batch * model.sequence / parallel[Axis::cp]),
        own_tokens_(parallel.sequence_parallel ? tokens_ / tp_ : tokens_),
        bytes_(value_bytes(parallel.precision)),
        hidden_(model.hidden),
        query_(model.query_width() / tp_),
        kv_(model.kv_width() / tp_),
        ffn_(model.ffn_width() / tp_),
        mask_(model.dropout ? 1 : 0) {}

  Layer block(std::uint32_t index);
  Layer embedding();
  Layer head();

 private:
  /// Values of the tensor-parallel part are gathered before it, and summed after it.
  void gather(std::vector<Op>& ops, const char* name, Op::Kind kind = collective) {
    if (!parallel_.sequence_parallel) return;
    communicate(ops, parallel_, kind, name, CollectiveKind::all_gather, GroupKind::tensor,
                own_tokens_ * hidden_ * bytes_);
  }
  void sum(std::vector<Op>& ops, const char* name, std::uint64_t copies = 1) {
    communicate(ops, parallel_, collective, name,
                parallel_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                GroupKind::tensor, copies * tokens_ * hidden_ * bytes_);
  }
  /// Of the values of all tokens that are divided by tp only with sequence parallelism: `accesses` bytes for each.
  Op own(const char* name, std::uint64_t accesses) const {
    return Ops::elementwise(name, accesses * own_tokens_ * hidden_);
  }

  std::vector<Op> core_forward() const;
  std::vector<Op> core_backward() const;
  void attention(Layer& layer);
  void mlp(Layer& layer);
  void experts(Layer& layer);
  std::uint64_t block_activations() const;

  const Transformer& model_;
  const Parallel& parallel_;
  Ops ops_;
  std::uint64_t tp_, tokens_;
  std::uint64_t own_tokens_;  ///< whose norms the NPU computes
  std::uint64_t bytes_, hidden_, query_, kv_, ffn_, mask_;
};

/// Scores of all the sequence's tokens for the NPU's own, softmax, weighted values: 4 s FLOPs for each query value.
std::vector<Op> Maker::core_forward() const {
  const std::uint64_t flops = 2 * tokens_ * model_.sequence * query_;
  const std::uint64_t all_kv = parallel_.micro_batch * model_.sequence * kv_ * bytes_;
  const std::uint64_t queries = tokens_ * query_ * bytes_;
  if (model_.fused_attention)
    return {{.name = "attention.core", .flops = 2 * flops, .bytes = 2 * queries + 2 * all_kv}};
  const std::uint64_t scores = tokens_ * model_.sequence * (model_.heads / tp_);
  return {{.name = "attention.scores", .flops = flops, .bytes = queries + all_kv + scores * bytes_},
          Ops::elementwise("attention.softmax", scores * (model_.dropout ? 4 * bytes_ + 1 : 2 * bytes_)),
          {.name = "attention.values", .flops = flops, .bytes = queries + all_kv + scores * bytes_}};
}

std::vector<Op> Maker::core_backward() const {
  const auto forward = core_forward();
  if (model_.fused_attention)  // the scores once more
    return {{.name = "attention.core", .flops = forward[0].flops / 2 * 5, .bytes = 2 * forward[0].bytes}};
  return {Ops::backward("attention.values", forward[2]), Ops::backward("attention.softmax", forward[1]),
          Ops::backward("attention.scores", forward[0])};
}

void Maker::attention(Layer& layer) {
  const Op norm = own("attention.norm", 2 * bytes_);
  const Op qkv = ops_.product("attention.qkv", tokens_, hidden_, query_ + 2 * kv_);
  const Op projection = ops_.product("attention.projection", tokens_, query_, hidden_);
  const Op residual = own("attention.residual", 3 * bytes_ + mask_);
  const auto append = [](std::vector<Op>& to, const std::vector<Op>& ops) {
    to.insert(to.end(), ops.begin(), ops.end());
  };

  auto& forward = layer.forward;
  forward.push_back(norm);
  gather(forward, "attention.all_gather");
  forward.push_back(qkv);
  for (const char* name : {"attention.keys.all_gather", "attention.values.all_gather"})
    communicate(forward, parallel_, collective, name, CollectiveKind::all_gather, GroupKind::context,
                tokens_ * kv_ * bytes_);
  append(forward, core_forward());
  forward.push_back(projection);
  sum(forward, "attention.sum");
  forward.push_back(residual);

  auto& backward = layer.backward;
  backward.push_back(own("attention.residual", 2 * bytes_ + mask_));
  gather(backward, "attention.gradient.all_gather");
  gather(backward, "attention.input.all_gather", aside);
  backward.push_back(Ops::backward("attention.projection", projection));
  if (parallel_.recompute == Recompute::selective && !model_.fused_attention) append(backward, core_forward());
  append(backward, core_backward());
  for (const char* name : {"attention.keys.reduce_scatter", "attention.values.reduce_scatter"})
    communicate(backward, parallel_, collective, name, CollectiveKind::reduce_scatter, GroupKind::context,
                tokens_ * parallel_[Axis::cp] * kv_ * bytes_);
  backward.push_back({.kind = join});
  backward.push_back(Ops::backward("attention.qkv", qkv));
  sum(backward, "attention.sum");
  backward.push_back(own("attention.norm", 4 * bytes_));

  const std::uint64_t biases = model_.biases ? query_ + 2 * kv_ + hidden_ : 0;
  layer.dense += hidden_ * (2 * query_ + 2 * kv_) + biases + norm_parameters(model_);
}

void Maker::mlp(Layer& layer) {
  const std::uint64_t into = matrices_into(model_);
  const Op first = ops_.product("mlp.first", tokens_, hidden_, into * ffn_);
  const Op activation = Ops::elementwise("mlp.activation", (into + 1) * bytes_ * tokens_ * ffn_);
  const Op second = ops_.product("mlp.second", tokens_, ffn_, hidden_);

  auto& forward = layer.forward;
  forward.push_back(own("mlp.norm", 2 * bytes_));
  gather(forward, "mlp.all_gather");
  forward.insert(forward.end(), {first, activation, second});
  sum(forward, "mlp.sum");
  forward.push_back(own("mlp.residual", 3 * bytes_ + mask_));

  std::vector<Op> backward = {own("mlp.residual", 2 * bytes_ + mask_)};
  gather(backward, "mlp.gradient.all_gather");
  gather(backward, "mlp.input.all_gather", aside);
  backward.insert(backward.end(), {Ops::backward("mlp.second", second), Ops::backward("mlp.activation", activation),
                                   Op{.kind = join}, Ops::backward("mlp.first", first)});
  sum(backward, "mlp.sum");
  backward.push_back(own("mlp.norm", 4 * bytes_));
  layer.backward.insert(layer.backward.begin(), backward.begin(), backward.end());

  const std::uint64_t biases = model_.biases ? into * ffn_ + hidden_ : 0;
  layer.dense += (into + 1) * hidden_ * ffn_ + biases + norm_parameters(model_);
}

/// Each token goes to top_k experts, which are spread over ep NPUs, and comes back. Experts have equal shares.
void Maker::experts(Layer& layer) {
  const std::uint64_t into = matrices_into(model_);
  const std::uint64_t own_experts = model_.experts / parallel_[Axis::ep];
  const std::uint64_t rows = tokens_ * model_.top_k, own_rows = own_tokens_ * model_.top_k;
  const Op router = ops_.product("experts.router", tokens_, hidden_ / tp_, model_.experts);
  const Op first = ops_.weighted("experts.first", rows, hidden_, into * ffn_, own_experts * hidden_ * into * ffn_);
  const Op activation = Ops::elementwise("experts.activation", (into + 1) * bytes_ * rows * ffn_);
  const Op second = ops_.weighted("experts.second", rows, ffn_, hidden_, own_experts * ffn_ * hidden_);
  const auto exchange = [&](std::vector<Op>& ops, const char* name) {
    communicate(ops, parallel_, collective, name, CollectiveKind::all_to_all, GroupKind::expert,
                own_rows * hidden_ * bytes_);
  };
  const auto gather_rows = [&](std::vector<Op>& ops, const char* name, Op::Kind kind) {
    if (parallel_.sequence_parallel)
      communicate(ops, parallel_, kind, name, CollectiveKind::all_gather, GroupKind::tensor,
                  own_rows * hidden_ * bytes_);
  };

  auto& forward = layer.forward;
  forward.insert(forward.end(), {own("experts.norm", 2 * bytes_), router});
  exchange(forward, "experts.dispatch");
  gather_rows(forward, "experts.all_gather", collective);
  forward.insert(forward.end(), {first, activation, second});
  sum(forward, "experts.sum", model_.top_k);
  exchange(forward, "experts.combine");
  forward.push_back(own("experts.residual", (2 + model_.top_k) * bytes_ + mask_));

  std::vector<Op> backward = {own("experts.residual", (2 + model_.top_k) * bytes_ + mask_)};
  exchange(backward, "experts.combine");
  gather_rows(backward, "experts.gradient.all_gather", collective);
  gather_rows(backward, "experts.input.all_gather", aside);
  backward.insert(backward.end(),
                  {Ops::backward("experts.second", second), Ops::backward("experts.activation", activation),
                   Op{.kind = join}, Ops::backward("experts.first", first)});
  sum(backward, "experts.sum", model_.top_k);
  exchange(backward, "experts.dispatch");
  backward.insert(backward.end(), {Ops::backward("experts.router", router), own("experts.norm", 4 * bytes_)});
  layer.backward.insert(layer.backward.begin(), backward.begin(), backward.end());

  layer.dense += hidden_ * model_.experts + norm_parameters(model_);
  layer.experts += own_experts * (into + 1) * hidden_ * ffn_;
}

/// Korthikanti et al. (2022), section 4, for any widths: what each operator keeps for its backward pass.
std::uint64_t Maker::block_activations() const {
  const std::uint64_t whole = own_tokens_ * hidden_;                   // divided by tp with sequence parallelism only
  const std::uint64_t copies = model_.experts > 0 ? model_.top_k : 1;  // of a token in the MLP
  std::uint64_t result = whole * (2 * bytes_ + bytes_ + copies * bytes_ + 2 * mask_);  // norms, inputs, masks
  result += tokens_ * bytes_ * (2 * query_ + 2 * kv_ * parallel_[Axis::cp]);           // q, k, v, projection's input
  result += tokens_ * copies * bytes_ * (matrices_into(model_) + 1) * ffn_;
  if (!model_.fused_attention && parallel_.recompute != Recompute::selective)
    result += tokens_ * model_.sequence * (model_.heads / tp_) * ((1 + mask_) * bytes_ + mask_);
  return result;
}

Layer Maker::block(std::uint32_t index) {
  Layer layer;
  layer.name = fmt::format("layer_{}", index);
  attention(layer);
  if (model_.experts > 0)
    experts(layer);
  else
    mlp(layer);
  const bool again = parallel_.recompute == Recompute::full;
  if (again) layer.again = layer.forward;
  const std::uint64_t all = block_activations();
  layer.activations = again ? own_tokens_ * hidden_ * bytes_ : all;
  layer.recomputed = all - layer.activations;
  layer.output = own_tokens_ * hidden_ * bytes_;
  return layer;
}

Layer Maker::embedding() {
  Layer layer{.name = "embedding", .extra = true};
  // A sum of a token's and a position's vector; each NPU of the tensor group finds its share of the tokens.
  const std::uint64_t sums = tokens_ * hidden_ / tp_;
  layer.forward = {{.name = "lookup", .flops = sums, .bytes = 2 * tokens_ * hidden_ * bytes_}};
  sum(layer.forward, "sum");
  gather(layer.backward, "gradient.all_gather");
  layer.backward.push_back({.name = "update", .flops = 2 * sums, .bytes = 3 * tokens_ * hidden_ * bytes_});
  layer.dense = model_.vocabulary / tp_ * hidden_;
  if (model_.tied_embeddings) layer.tied = layer.dense;
  if (model_.learned_positions) layer.dense += model_.sequence * hidden_;
  layer.activations = mask_ * own_tokens_ * hidden_;
  layer.output = own_tokens_ * hidden_ * bytes_;
  return layer;
}

Layer Maker::head() {
  Layer layer{.name = "output", .extra = true};
  const std::uint64_t words = model_.vocabulary / tp_;
  const Op logits = ops_.product("logits", tokens_, hidden_, words);
  layer.forward.push_back(own("norm", 2 * bytes_));
  gather(layer.forward, "all_gather");
  layer.forward.push_back(logits);
  layer.forward.push_back(Ops::elementwise("loss", tokens_ * words * (bytes_ + 4)));
  for (const char* name : {"loss.largest", "loss.sum", "loss.target"})  // of each token, in fp32
    communicate(layer.forward, parallel_, collective, name, CollectiveKind::all_reduce, GroupKind::tensor, tokens_ * 4);
  gather(layer.backward, "input.all_gather", aside);
  layer.backward.push_back(Ops::elementwise("loss", tokens_ * words * (bytes_ + 4)));
  layer.backward.push_back({.kind = join});
  layer.backward.push_back(Ops::backward("logits", logits));
  sum(layer.backward, "sum");
  layer.backward.push_back(own("norm", 4 * bytes_));
  const bool has_own = !model_.tied_embeddings || parallel_[Axis::pp] > 1;
  layer.dense = (has_own ? words * hidden_ : 0) + norm_parameters(model_);
  if (model_.tied_embeddings && has_own) layer.tied = words * hidden_;
  layer.activations = 2 * own_tokens_ * hidden_ * bytes_ + tokens_ * words * 4;
  layer.output = 0;
  return layer;
}

}  // namespace

std::vector<Layer> layers_of(const Transformer& model, const Parallel& parallel) {
  Maker maker(model, parallel);
  std::vector<Layer> layers;
  if (model.vocabulary > 0) layers.push_back(maker.embedding());
  for (std::uint32_t i = 0; i < model.layers; ++i) layers.push_back(maker.block(i));
  if (model.vocabulary > 0) layers.push_back(maker.head());
  return layers;
}

ParameterCount parameters_of(const Transformer& model) {
  const std::uint64_t h = model.hidden, q = model.query_width(), kv = model.kv_width(), f = model.ffn_width();
  const std::uint64_t into = matrices_into(model);
  std::uint64_t shared = h * (2 * q + 2 * kv) + 2 * norm_parameters(model) + (model.biases ? q + 2 * kv + h : 0);
  std::uint64_t expert = (into + 1) * h * f;
  if (model.experts > 0)
    shared += h * model.experts;
  else
    shared += model.biases ? into * f + h : 0;
  const std::uint64_t ends = model.vocabulary == 0
                                 ? 0
                                 : model.vocabulary * h * (model.tied_embeddings ? 1 : 2) +
                                       (model.learned_positions ? model.sequence * h : 0) + norm_parameters(model);
  const std::uint64_t copies = std::max(model.experts, 1U), used = std::max(model.top_k, 1U);
  return {model.layers * (shared + copies * expert) + ends, model.layers * (shared + used * expert) + ends};
}

void validate(const Transformer& model, const Parallel& parallel) {
  require_positive("workload.model.layers", model.layers);
  require_positive("workload.model.hidden", model.hidden);
  require_positive("workload.model.heads", model.heads);
  require_positive("workload.model.sequence", model.sequence);
  const std::uint64_t tp = parallel[Axis::tp], cp = parallel[Axis::cp], ep = parallel[Axis::ep];
  if (model.head_size == 0) require_multiple("workload.model.hidden", model.hidden, "heads", model.heads);
  if (model.kv_heads > 0) require_multiple("workload.model.heads", model.heads, "kv-heads", model.kv_heads);
  require_multiple("workload.model.heads", model.heads, "tp", tp);
  if (model.kv_heads > 0) require_multiple("workload.model.kv-heads", model.kv_heads, "tp", tp);
  require_multiple("workload.model.hidden", model.hidden, "tp", tp);
  require_multiple("workload.model.ffn", model.ffn_width(), "tp", tp);
  require_multiple("workload.model.vocabulary", model.vocabulary, "tp", tp);
  require_multiple("workload.model.sequence", model.sequence, "cp", cp);
  if (parallel.sequence_parallel) require_multiple("workload.model.sequence", model.sequence / cp, "tp", tp);
  const double hidden = static_cast<double>(model.hidden), sequence = static_cast<double>(model.sequence);
  const double query = static_cast<double>(model.query_width()), used = std::max(model.top_k, 1U);
  const double matrices = hidden * (4 * query + 3 * used * static_cast<double>(model.ffn_width()) +
                                    static_cast<double>(model.experts) + static_cast<double>(model.vocabulary));
  require_countable("workload.model", "FLOPs in a layer",
                    2 * static_cast<double>(parallel.micro_batch) * sequence * (matrices + 2 * sequence * query));
  require_countable("workload.model", "parameters",
                    model.layers * (matrices + 3 * hidden * static_cast<double>(model.ffn_width()) * model.experts));
  if (model.experts == 0) {
    if (ep > 1) refuse("workload.parallel.ep", ep, "1: the model has no experts");
    if (model.top_k > 0) refuse("workload.model.top-k", model.top_k, "0, or experts");
    return;
  }
  require_multiple("workload.model.experts", model.experts, "ep", ep);
  if (model.top_k == 0 || model.top_k > model.experts)
    refuse("workload.model.top-k", model.top_k, fmt::format("1 to {} experts", model.experts));
}

}  // namespace orrery::workload
