#include "orrery/workload/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "layer.hpp"
#include "operators.hpp"
#include "requirements.hpp"

namespace orrery::workload {
namespace {

using trace::CollectiveKind;
using enum Operator::Kind;

/// A norm has a second vector if products have biases, as in GPT.
std::uint64_t norm_parameters(const Transformer& model) { return model.hidden * (model.biases ? 2 : 1); }

/// Returns how many matrices lead into the inner width of the MLP.
std::uint64_t matrices_into(const Transformer& model) { return model.mlp.gated ? 2 : 1; }

/// Makes the layers; all sizes are those of one NPU and one micro-batch.
class TransformerLayers {
 public:
  TransformerLayers(const Transformer& model, const Parallel& parallel)
      : model_(model),
        parallel_(parallel),
        operators_(parallel),
        tp_(parallel[Axis::tp]),
        tokens_(parallel.micro_batch * model.sequence / parallel[Axis::cp]),
        own_tokens_(parallel.sequence_parallel ? tokens_ / tp_ : tokens_),
        bytes_(value_bytes(parallel.precision)),
        hidden_(model.hidden),
        query_(model.query_width() / tp_),
        kv_(model.kv_width() * model.kv_copies(parallel[Axis::tp]) / tp_),
        mlp_width_(model.mlp_width() / tp_),
        mask_(model.dropout ? 1 : 0) {}

  Layer block(std::uint32_t index);
  Layer embedding();
  Layer output();

 private:
  /// Gathers the values of all tokens before a tensor-parallel part.
  void gather(std::vector<Operator>& operators, const char* name, Operator::Kind kind = collective) {
    if (!parallel_.sequence_parallel) return;
    add_collective(operators, parallel_, kind, name, CollectiveKind::all_gather, GroupKind::tensor,
                   own_tokens_ * hidden_ * bytes_);
  }
  /// Adds up the values of all tokens after a tensor-parallel part.
  void sum(std::vector<Operator>& operators, const char* name, std::uint64_t copies = 1) {
    add_sum(operators, collective, name, copies * tokens_ * hidden_ * bytes_);
  }
  void add_sum(std::vector<Operator>& operators, Operator::Kind kind, const char* name, std::uint64_t bytes) {
    add_collective(operators, parallel_, kind, name,
                   parallel_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                   GroupKind::tensor, bytes);
  }
  /// Adds a product and the gather before it. A part of the product is computed beside the gather.
  void gather_into(std::vector<Operator>& operators, const char* name, const Operator& product) {
    if (!parallel_.sequence_parallel || parallel_.tensor_overlap == 0) {
      gather(operators, name);
      operators.push_back(product);
      return;
    }
    gather(operators, name, asynchronous);
    const auto [beside, rest] = Operators::split(product, parallel_.tensor_overlap);
    operators.insert(operators.end(), {beside, {.kind = wait}, rest});
  }
  /// Adds the backward pass of a part's last product, behind the gather of its gradient. What the part gathered in the
  /// forward pass is gathered again, for a later product.
  void gather_gradient_into(std::vector<Operator>& operators, const char* gradient, const char* input,
                            const Operator& product) {
    if (parallel_.tensor_overlap > 0) {
      gather_into(operators, gradient, product);
      gather(operators, input, asynchronous);
    } else {
      gather(operators, gradient);
      gather(operators, input, asynchronous);
      operators.push_back(product);
    }
  }
  /// Adds a product and the sum of its results. A part of the product is computed beside the sum.
  void sum_of(std::vector<Operator>& operators, const Operator& product, const char* name) {
    if (parallel_.tensor_overlap == 0) {
      operators.push_back(product);
      sum(operators, name);
      return;
    }
    const auto [beside, before] = Operators::split(product, parallel_.tensor_overlap);
    operators.push_back(before);
    add_sum(operators, asynchronous, name, tokens_ * hidden_ * bytes_);
    operators.insert(operators.end(), {beside, {.kind = wait}});
  }
  /// Returns an operator that moves `accesses` bytes for each value of the tokens that are the NPU's own: tp divides
  /// them only with sequence parallelism.
  Operator own(const char* name, std::uint64_t accesses) const {
    return Operators::elementwise(name, accesses * own_tokens_ * hidden_);
  }

  std::vector<Operator> core_forward() const;
  std::vector<Operator> core_backward() const;
  void attention(Layer& layer);
  void mlp(Layer& layer);
  void experts(Layer& layer);
  std::uint64_t block_activations() const;

  const Transformer& model_;
  const Parallel& parallel_;
  Operators operators_;
  std::uint64_t tp_, tokens_;
  std::uint64_t own_tokens_;  ///< the tokens whose norms the NPU computes
  std::uint64_t bytes_, hidden_, query_, kv_, mlp_width_, mask_;
};

/// The core of attention computes the scores of the NPU's own tokens with all tokens of the sequence, the softmax and
/// the weighted values: 4 s FLOPs for each query value.
std::vector<Operator> TransformerLayers::core_forward() const {
  const std::uint64_t flops = 2 * tokens_ * model_.sequence * query_;
  const std::uint64_t all_kv = parallel_.micro_batch * model_.sequence * kv_ * bytes_;
  const std::uint64_t queries = tokens_ * query_ * bytes_;
  const compute::ProductShape scores_of_head = {
      .m = tokens_ / parallel_.micro_batch,
      .k = model_.head_width(),
      .n = model_.sequence,
      .copies = parallel_.micro_batch * (model_.attention.heads / tp_),
  };
  if (model_.attention.fused)
    return {{.name = "attention.core",
             .flops = 2 * flops,
             .bytes = 2 * queries + 2 * all_kv,
             .operation = compute::Operation::Kind::attention,
             .shape = scores_of_head,
             .is_causal = model_.attention.causal}};
  const std::uint64_t scores = tokens_ * model_.sequence * (model_.attention.heads / tp_);
  const std::uint64_t bytes = queries + all_kv + scores * bytes_;
  using compute::Operation;
  return {{.name = "attention.scores",
           .flops = flops,
           .bytes = bytes,
           .operation = Operation::Kind::product,
           .shape = scores_of_head},
          Operators::elementwise("attention.softmax", scores * (model_.dropout ? 4 * bytes_ + 1 : 2 * bytes_)),
          {.name = "attention.values",
           .flops = flops,
           .bytes = bytes,
           .operation = Operation::Kind::product,
           .shape = {scores_of_head.m, scores_of_head.n, scores_of_head.k, scores_of_head.copies}}};
}

std::vector<Operator> TransformerLayers::core_backward() const {
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

void TransformerLayers::attention(Layer& layer) {
  const Operator norm = own("attention.norm", 2 * bytes_);
  const Operator qkv = operators_.product("attention.qkv", tokens_, hidden_, query_ + 2 * kv_);
  const Operator projection = operators_.product("attention.projection", tokens_, query_, hidden_);
  const Operator residual = own("attention.residual", 3 * bytes_ + mask_);
  const Operator rotation = Operators::elementwise("attention.rotary", 2 * tokens_ * (query_ + kv_) * bytes_);
  const bool is_ring = parallel_.context_exchange == ContextExchange::ring;
  const auto append = [](std::vector<Operator>& to, const std::vector<Operator>& ops) {
    to.insert(to.end(), ops.begin(), ops.end());
  };

  auto& forward = layer.forward;
  forward.push_back(norm);
  gather_into(forward, "attention.all_gather", qkv);
  if (model_.attention.rotary) forward.push_back(rotation);
  const auto exchange = is_ring ? asynchronous : collective;
  for (const char* name : {"attention.keys.all_gather", "attention.values.all_gather"})
    add_collective(forward, parallel_, exchange, name, CollectiveKind::all_gather, GroupKind::context,
                   tokens_ * kv_ * bytes_);
  append(forward, core_forward());
  if (is_ring) forward.push_back({.kind = wait});
  sum_of(forward, projection, "attention.sum");
  forward.push_back(residual);

  auto& backward = layer.backward;
  backward.push_back(own("attention.residual", 2 * bytes_ + mask_));
  gather_gradient_into(backward, "attention.gradient.all_gather", "attention.input.all_gather",
                       Operators::backward("attention.projection", projection));
  if (parallel_.recompute == Recompute::selective && !model_.attention.fused) append(backward, core_forward());
  const auto sum_keys = [&](Operator::Kind kind) {
    for (const char* name : {"attention.keys.reduce_scatter", "attention.values.reduce_scatter"})
      add_collective(backward, parallel_, kind, name, CollectiveKind::reduce_scatter, GroupKind::context,
                     tokens_ * parallel_[Axis::cp] * kv_ * bytes_);
  };
  if (is_ring) {  // keys and values go around again, and their gradients with them
    for (const char* name : {"attention.keys.all_gather", "attention.values.all_gather"})
      add_collective(backward, parallel_, asynchronous, name, CollectiveKind::all_gather, GroupKind::context,
                     tokens_ * kv_ * bytes_);
    sum_keys(asynchronous);
  }
  append(backward, core_backward());
  if (!is_ring) sum_keys(collective);
  if (model_.attention.rotary) backward.push_back(rotation);
  backward.push_back({.kind = wait});
  sum_of(backward, Operators::backward("attention.qkv", qkv), "attention.sum");
  backward.push_back(own("attention.norm", 4 * bytes_));

  const std::uint64_t copies = model_.kv_copies(parallel_[Axis::tp]);
  layer.repeated_flops = 4 * tokens_ * kv_ * (hidden_ / copies) * (copies - 1);
  const std::uint64_t biases = model_.biases ? query_ + 2 * kv_ + hidden_ : 0;
  layer.dense += hidden_ * (2 * query_ + 2 * kv_) + biases + norm_parameters(model_);
}

void TransformerLayers::mlp(Layer& layer) {
  const std::uint64_t into = matrices_into(model_);
  const Operator first = operators_.product("mlp.first", tokens_, hidden_, into * mlp_width_);
  const Operator activation = Operators::elementwise("mlp.activation", (into + 1) * bytes_ * tokens_ * mlp_width_);
  const Operator second = operators_.product("mlp.second", tokens_, mlp_width_, hidden_);

  auto& forward = layer.forward;
  forward.push_back(own("mlp.norm", 2 * bytes_));
  gather_into(forward, "mlp.all_gather", first);
  forward.push_back(activation);
  sum_of(forward, second, "mlp.sum");
  forward.push_back(own("mlp.residual", 3 * bytes_ + mask_));

  std::vector<Operator> backward = {own("mlp.residual", 2 * bytes_ + mask_)};
  gather_gradient_into(backward, "mlp.gradient.all_gather", "mlp.input.all_gather",
                       Operators::backward("mlp.second", second));
  backward.insert(backward.end(), {Operators::backward("mlp.activation", activation), Operator{.kind = wait}});
  sum_of(backward, Operators::backward("mlp.first", first), "mlp.sum");
  backward.push_back(own("mlp.norm", 4 * bytes_));
  layer.backward.insert(layer.backward.begin(), backward.begin(), backward.end());

  const std::uint64_t biases = model_.biases ? into * mlp_width_ + hidden_ : 0;
  layer.dense += (into + 1) * hidden_ * mlp_width_ + biases + norm_parameters(model_);
}

/// Each token goes to top_k experts, which are spread over ep NPUs, and comes back. All experts get the same number.
void TransformerLayers::experts(Layer& layer) {
  const std::uint64_t into = matrices_into(model_);
  const std::uint64_t own_experts = model_.mlp.experts / parallel_[Axis::ep];
  const std::uint64_t rows = tokens_ * model_.mlp.top_k, own_rows = own_tokens_ * model_.mlp.top_k;
  const Operator router = operators_.product("experts.router", tokens_, hidden_ / tp_, model_.mlp.experts);
  Operator first =
      operators_.weighted("experts.first", rows, hidden_, into * mlp_width_, own_experts * hidden_ * into * mlp_width_);
  const Operator activation = Operators::elementwise("experts.activation", (into + 1) * bytes_ * rows * mlp_width_);
  Operator second =
      operators_.weighted("experts.second", rows, mlp_width_, hidden_, own_experts * mlp_width_ * hidden_);
  // What all of an NPU's experts compute is as many products as it has experts.
  for (Operator* const op : {&first, &second}) {
    op->shape.m = std::max<std::uint64_t>(rows / own_experts, 1);
    op->shape.copies = own_experts;
  }
  const auto exchange = [&](std::vector<Operator>& operators, const char* name) {
    add_collective(operators, parallel_, collective, name, CollectiveKind::all_to_all, GroupKind::expert,
                   own_rows * hidden_ * bytes_);
  };
  const auto gather_rows = [&](std::vector<Operator>& operators, const char* name, Operator::Kind kind) {
    if (parallel_.sequence_parallel)
      add_collective(operators, parallel_, kind, name, CollectiveKind::all_gather, GroupKind::tensor,
                     own_rows * hidden_ * bytes_);
  };

  auto& forward = layer.forward;
  forward.insert(forward.end(), {own("experts.norm", 2 * bytes_), router});
  exchange(forward, "experts.dispatch");
  gather_rows(forward, "experts.all_gather", collective);
  forward.insert(forward.end(), {first, activation, second});
  sum(forward, "experts.sum", model_.mlp.top_k);
  exchange(forward, "experts.combine");
  forward.push_back(own("experts.residual", (2 + model_.mlp.top_k) * bytes_ + mask_));

  std::vector<Operator> backward = {own("experts.residual", (2 + model_.mlp.top_k) * bytes_ + mask_)};
  exchange(backward, "experts.combine");
  gather_rows(backward, "experts.gradient.all_gather", collective);
  gather_rows(backward, "experts.input.all_gather", asynchronous);
  backward.insert(backward.end(),
                  {Operators::backward("experts.second", second), Operators::backward("experts.activation", activation),
                   Operator{.kind = wait}, Operators::backward("experts.first", first)});
  sum(backward, "experts.sum", model_.mlp.top_k);
  exchange(backward, "experts.dispatch");
  backward.insert(backward.end(), {Operators::backward("experts.router", router), own("experts.norm", 4 * bytes_)});
  layer.backward.insert(layer.backward.begin(), backward.begin(), backward.end());

  layer.dense += hidden_ * model_.mlp.experts + norm_parameters(model_);
  layer.experts += own_experts * (into + 1) * hidden_ * mlp_width_;
}

/// Returns what the operators of a block keep for the backward pass, as Korthikanti et al. (2022), section 4, but for
/// any widths.
std::uint64_t TransformerLayers::block_activations() const {
  const std::uint64_t whole = own_tokens_ * hidden_;
  const std::uint64_t copies = model_.mlp.experts > 0 ? model_.mlp.top_k : 1;          // of a token in the MLP
  std::uint64_t result = whole * (2 * bytes_ + bytes_ + copies * bytes_ + 2 * mask_);  // norms, inputs, masks
  result += tokens_ * bytes_ * (2 * query_ + 2 * kv_ * parallel_[Axis::cp]);           // q, k, v, projection's input
  result += tokens_ * copies * bytes_ * (matrices_into(model_) + 1) * mlp_width_;
  if (!model_.attention.fused && parallel_.recompute != Recompute::selective)
    result += tokens_ * model_.sequence * (model_.attention.heads / tp_) * ((1 + mask_) * bytes_ + mask_);
  return result;
}

Layer TransformerLayers::block(std::uint32_t index) {
  Layer layer;
  layer.name = fmt::format("layer_{}", index);
  attention(layer);
  if (model_.mlp.experts > 0)
    experts(layer);
  else
    mlp(layer);
  const bool is_recomputed = parallel_.recompute == Recompute::full;
  if (is_recomputed) layer.recomputation = layer.forward;
  const std::uint64_t all = block_activations();
  layer.activations = is_recomputed ? own_tokens_ * hidden_ * bytes_ : all;
  layer.recomputed = all - layer.activations;
  layer.output = own_tokens_ * hidden_ * bytes_;
  return layer;
}

Layer TransformerLayers::embedding() {
  Layer layer{.name = "embedding", .is_beside_blocks = true};
  // The vectors of a token and of its position are added. Each NPU of the tensor group finds its share of the tokens.
  const std::uint64_t sums = tokens_ * hidden_ / tp_;
  layer.forward = {{.name = "lookup", .flops = sums, .bytes = 2 * tokens_ * hidden_ * bytes_}};
  sum(layer.forward, "sum");
  gather(layer.backward, "gradient.all_gather");
  layer.backward.push_back({.name = "update", .flops = 2 * sums, .bytes = 3 * tokens_ * hidden_ * bytes_});
  layer.dense = model_.embedding.vocabulary / tp_ * hidden_;
  if (model_.embedding.tied) layer.tied = layer.dense;
  if (model_.embedding.learned_positions) layer.dense += model_.sequence * hidden_;
  layer.activations = mask_ * own_tokens_ * hidden_;
  layer.output = own_tokens_ * hidden_ * bytes_;
  return layer;
}

Layer TransformerLayers::output() {
  Layer layer{.name = "output", .is_beside_blocks = true};
  const std::uint64_t words = model_.embedding.vocabulary / tp_;
  const Operator logits = operators_.product("logits", tokens_, hidden_, words);
  layer.forward.push_back(own("norm", 2 * bytes_));
  gather(layer.forward, "all_gather");
  layer.forward.push_back(logits);
  layer.forward.push_back(Operators::elementwise("loss", tokens_ * words * (bytes_ + 4)));
  for (const char* name : {"loss.largest", "loss.sum", "loss.target"})  // of each token, in fp32
    add_collective(layer.forward, parallel_, collective, name, CollectiveKind::all_reduce, GroupKind::tensor,
                   tokens_ * 4);
  gather(layer.backward, "input.all_gather", asynchronous);
  layer.backward.push_back(Operators::elementwise("loss", tokens_ * words * (bytes_ + 4)));
  layer.backward.push_back({.kind = wait});
  layer.backward.push_back(Operators::backward("logits", logits));
  sum(layer.backward, "sum");
  layer.backward.push_back(own("norm", 4 * bytes_));
  const bool has_own = !model_.embedding.tied || has_ends_apart(parallel_);
  layer.dense = (has_own ? words * hidden_ : 0) + norm_parameters(model_);
  if (model_.embedding.tied && has_own) layer.tied = words * hidden_;
  layer.activations = 2 * own_tokens_ * hidden_ * bytes_ + tokens_ * words * 4;
  layer.output = 0;
  return layer;
}

void require_even_division(const Transformer& model, const Parallel& parallel) {
  const std::uint64_t tp = parallel[Axis::tp], cp = parallel[Axis::cp];
  const auto& [heads, kv_heads, head_size, fused, causal, rotary] = model.attention;
  if (head_size == 0) require_multiple("workload.model.hidden", model.hidden, "heads", heads);
  if (kv_heads > 0) require_multiple("workload.model.heads", heads, "kv-heads", kv_heads);
  require_multiple("workload.model.heads", heads, "tp", tp);
  if (tp > model.kv_heads())
    require_multiple("workload.parallel.tp", tp, "kv-heads", model.kv_heads());
  else
    require_multiple("workload.model.kv-heads", model.kv_heads(), "tp", tp);
  require_multiple("workload.model.hidden", model.hidden, "tp", tp);
  require_multiple("workload.model.ffn", model.mlp_width(), "tp", tp);
  require_multiple("workload.model.vocabulary", model.embedding.vocabulary, "tp", tp);
  require_multiple("workload.model.sequence", model.sequence, "cp", cp);
  if (parallel.sequence_parallel) require_multiple("workload.model.sequence", model.sequence / cp, "tp", tp);
}

void require_countable_work(const Transformer& model, const Parallel& parallel) {
  const double hidden = static_cast<double>(model.hidden), sequence = static_cast<double>(model.sequence);
  const double query = static_cast<double>(model.query_width()), used = std::max(model.mlp.top_k, 1U);
  const double width = static_cast<double>(model.mlp_width());
  const double matrices = hidden * (4 * query + 3 * used * width + static_cast<double>(model.mlp.experts) +
                                    static_cast<double>(model.embedding.vocabulary));
  require_countable("workload.model", "FLOPs in a layer",
                    2 * static_cast<double>(parallel.micro_batch) * sequence * (matrices + 2 * sequence * query));
  require_countable("workload.model", "parameters", model.layers * (matrices + 3 * hidden * width * model.mlp.experts));
}

void require_experts(const Transformer::Mlp& mlp, std::uint64_t ep) {
  if (mlp.experts == 0) {
    if (ep > 1) refuse("workload.parallel.ep", ep, "1: the model has no experts");
    if (mlp.top_k > 0) refuse("workload.model.top-k", mlp.top_k, "0, or experts");
    return;
  }
  require_multiple("workload.model.experts", mlp.experts, "ep", ep);
  if (mlp.top_k == 0 || mlp.top_k > mlp.experts)
    refuse("workload.model.top-k", mlp.top_k, fmt::format("1 to {} experts", mlp.experts));
}

}  // namespace

std::vector<Layer> Transformer::make_layers(const Parallel& parallel) const {
  TransformerLayers maker(*this, parallel);
  const bool has_ends = embedding.vocabulary > 0;
  std::vector<Layer> made;
  if (has_ends) made.push_back(maker.embedding());
  for (std::uint32_t i = 0; i < layers; ++i) made.push_back(maker.block(i));
  if (has_ends) made.push_back(maker.output());
  return made;
}

ParameterCount Transformer::count_parameters() const {
  const std::uint64_t h = hidden, q = query_width(), kv = kv_width(), f = mlp_width();
  const std::uint64_t into = matrices_into(*this), norm = norm_parameters(*this);
  std::uint64_t shared = h * (2 * q + 2 * kv) + 2 * norm + (biases ? q + 2 * kv + h : 0);
  const std::uint64_t expert = (into + 1) * h * f;
  if (mlp.experts > 0)
    shared += h * mlp.experts;
  else
    shared += biases ? into * f + h : 0;
  const std::uint64_t ends = embedding.vocabulary == 0 ? 0
                                                       : embedding.vocabulary * h * (embedding.tied ? 1 : 2) +
                                                             (embedding.learned_positions ? sequence * h : 0) + norm;
  const std::uint64_t copies = std::max(mlp.experts, 1U), used = std::max(mlp.top_k, 1U);
  return {layers * (shared + copies * expert) + ends, layers * (shared + used * expert) + ends};
}

void Transformer::validate(const Parallel& parallel) const {
  require_positive("workload.model.layers", layers);
  require_positive("workload.model.hidden", hidden);
  require_positive("workload.model.heads", attention.heads);
  require_positive("workload.model.sequence", sequence);
  require_even_division(*this, parallel);
  require_countable_work(*this, parallel);
  require_experts(mlp, parallel[Axis::ep]);
}

}  // namespace orrery::workload
