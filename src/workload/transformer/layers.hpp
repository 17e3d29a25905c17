#pragma once

#include <cstdint>
#include <vector>

#include "layer.hpp"
#include "operators.hpp"
#include "orrery/workload/transformer.hpp"

namespace orrery::workload {

/// A norm has a second vector if products have biases, as in GPT.
inline std::uint64_t norm_parameters(const Transformer& model) { return model.hidden * (model.biases ? 2 : 1); }

/// Returns how many matrices lead into the inner width of the MLP.
inline std::uint64_t matrices_into(const Transformer& model) { return model.mlp.gated ? 2 : 1; }

/// How many tokens pass experts, of those that would if all were used alike.
struct ExpertLoad {
  double own = 1;   ///< the experts of the NPU
  double most = 1;  ///< load of the NPU whose experts have most, relative to the mean
};

/// Draws the load of the experts of a layer. Without a rank `own` is 1. Source of the form: shares of tokens of trained
/// routers spread about their mean by a factor, so that their logarithm is taken to be normal (docs/workloads.md).
ExpertLoad draw_expert_load(const Transformer& model, const Parallel& parallel, std::uint32_t layer,
                            std::optional<std::uint32_t> rank);

/// Makes the layers; all sizes are those of one NPU and one micro-batch.
class TransformerLayers {
 public:
  /// `expert_rank`: as make_layers says.
  TransformerLayers(const Transformer& model, const Parallel& parallel, std::optional<std::uint32_t> expert_rank)
      : model_(model),
        parallel_(parallel),
        recomputed_(model.recomputed_modules(parallel)),
        expert_rank_(expert_rank),
        operators_(parallel),
        tp_(parallel[Axis::tp]),
        tokens_(parallel.micro_batch * (is_decode() ? 1 : model.sequence) / parallel[Axis::cp]),
        own_tokens_(parallel.sequence_parallel ? tokens_ / tp_ : tokens_),
        bytes_(value_bytes(parallel.precision)),
        hidden_(model.hidden),
        query_(model.query_width() / tp_),
        result_(model.attention.heads * model.value_head() / tp_),
        keys_(model.key_width() * model.kv_copies(parallel[Axis::tp]) / tp_),
        values_(model.value_width() * model.kv_copies(parallel[Axis::tp]) / tp_),
        mask_(model.dropout ? 1 : 0) {}

  /// Returns a block of this index, with experts if the model has them there.
  Layer block(std::uint32_t index);
  Layer embedding();
  /// Returns the output layer. Blocks that predict further tokens are part of it.
  Layer output();
  /// Returns the core of attention of one token for each sequence, which has `pairs` scores with tokens before, and
  /// `context` of them on the mean.
  Operator decoding_core(std::uint64_t pairs, std::uint64_t context) const;
  /// Returns the core of attention of whole sequences, each behind `context` tokens whose keys and values are kept.
  std::vector<Operator> prefill_core(std::uint64_t context) const;

 private:
  bool is_decode() const { return parallel_.pipeline.phase == Phase::decode; }
  /// Products of a few rows are not cut in pieces to compute beside a collective.
  double tensor_overlap() const { return is_decode() ? 0 : parallel_.overlap.tensor; }
  /// Gathers the values of all tokens before a tensor-parallel part.
  void gather(std::vector<Operator>& operators, const char* name, Operator::Kind kind = Operator::Kind::collective) {
    if (!parallel_.sequence_parallel) return;
    add_collective(operators, parallel_, kind, name, trace::CollectiveKind::all_gather, GroupKind::tensor,
                   own_tokens_ * hidden_ * bytes_);
  }
  /// Adds up the values of all tokens after a tensor-parallel part.
  void sum(std::vector<Operator>& operators, const char* name, std::uint64_t copies = 1) {
    add_sum(operators, Operator::Kind::collective, name, copies * tokens_ * hidden_ * bytes_);
  }
  void add_sum(std::vector<Operator>& operators, Operator::Kind kind, const char* name, std::uint64_t bytes) {
    add_collective(
        operators, parallel_, kind, name,
        parallel_.sequence_parallel ? trace::CollectiveKind::reduce_scatter : trace::CollectiveKind::all_reduce,
        GroupKind::tensor, bytes);
  }
  /// Adds a product and the gather before it. A part of the product is computed beside the gather.
  void gather_into(std::vector<Operator>& operators, const char* name, const Operator& product) {
    if (!parallel_.sequence_parallel || tensor_overlap() == 0) {
      gather(operators, name);
      operators.push_back(product);
      return;
    }
    gather(operators, name, Operator::Kind::asynchronous);
    const auto [beside, rest] = Operators::split(product, tensor_overlap());
    operators.insert(operators.end(), {beside, {.kind = Operator::Kind::wait}, rest});
  }
  /// Adds the backward pass of a part's last product, behind the gather of its gradient. What the part gathered in the
  /// forward pass is gathered again, for a later product.
  void gather_gradient_into(std::vector<Operator>& operators, const char* gradient, const char* input,
                            const Operator& product) {
    if (tensor_overlap() > 0) {
      gather_into(operators, gradient, product);
      gather(operators, input, Operator::Kind::asynchronous);
    } else {
      gather(operators, gradient);
      gather(operators, input, Operator::Kind::asynchronous);
      operators.push_back(product);
    }
  }
  /// Adds a product and the sum of its results. A part of the product is computed beside the sum.
  void sum_of(std::vector<Operator>& operators, const Operator& product, const char* name) {
    if (tensor_overlap() == 0) {
      operators.push_back(product);
      sum(operators, name);
      return;
    }
    const auto [beside, before] = Operators::split(product, tensor_overlap());
    operators.push_back(before);
    add_sum(operators, Operator::Kind::asynchronous, name, tokens_ * hidden_ * bytes_);
    operators.insert(operators.end(), {beside, {.kind = Operator::Kind::wait}});
  }
  /// Returns an operator that moves `accesses` bytes for each value of the tokens that are the NPU's own: tp divides
  /// them only with sequence parallelism.
  Operator own(const char* name, std::uint64_t accesses) const {
    return Operators::elementwise(name, accesses * own_tokens_ * hidden_);
  }

  /// Adds the operators of a forward pass from one on, as the backward pass computes them again.
  static void append_again(std::vector<Operator>& backward, const std::vector<Operator>& forward, std::size_t from) {
    for (std::size_t i = from; i < forward.size(); ++i) backward.push_back(Operators::again(forward[i]));
  }

  std::pair<std::uint64_t, std::uint64_t> loss_bytes() const;
  void add_logits(Layer& layer);
  Layer next_words();
  std::uint64_t cache_width() const;
  void add_further_token(Layer& layer);
  /// Adds the attention of a block, or its MLP of this inner width.
  void attention(Layer& layer);
  void mlp(Layer& layer, std::uint64_t width);
  /// Adds the experts of a block, and those that every token passes.
  void experts(Layer& layer, const ExpertLoad& load);
  std::uint64_t experts_with_rows() const;
  void count_experts(Layer& layer) const;
  /// A collective that brings tokens to experts, or back.
  struct Exchange {
    trace::CollectiveKind kind{};
    std::uint64_t bytes = 0;
  };
  /// `load`: that of the NPU that gets most.
  Exchange exchange_of(double load, bool to_experts) const;
  void exchange(std::vector<Operator>& operators, const char* name, const Exchange& made,
                const std::vector<Operator>& beside) const;
  /// Returns what the operators of a block keep for the backward pass.
  std::uint64_t block_activations(bool has_experts, const ExpertLoad& load) const;
  /// Returns how many tokens pass the experts of an NPU that has `tokens` of its own.
  std::uint64_t routed(std::uint64_t tokens, double load = 1) const {
    return static_cast<std::uint64_t>(static_cast<double>(tokens * model_.mlp.top_k) * parallel_.experts.capacity *
                                      load);
  }

  /// The operators that make queries, keys and values of the NPU's heads from its tokens, and their backward pass.
  struct Inputs {
    std::vector<Operator> forward, backward;
    std::vector<Operator> again = {};  ///< operators that the backward pass computes again before the core
  };
  Inputs plain_inputs();
  Inputs latent_inputs();
  std::vector<Operator> core_forward() const;
  Operator up_keys(std::uint64_t tokens) const;
  std::vector<Operator> core_backward() const;
  void add_positions(Inputs& inputs) const;
  std::uint64_t attention_parameters() const;

  /// The MLP that every token passes beside its experts: operators of its two products.
  struct SharedExpert {
    std::vector<Operator> first, second;
  };
  SharedExpert shared_forward();
  SharedExpert shared_backward();

  const Transformer& model_;
  const Parallel& parallel_;
  RecomputedModules recomputed_;
  std::optional<std::uint32_t> expert_rank_;
  Operators operators_;
  std::uint64_t tp_, tokens_;
  std::uint64_t own_tokens_;  ///< the tokens whose norms the NPU computes
  std::uint64_t bytes_, hidden_;
  std::uint64_t query_, result_;  ///< widths of the NPU's heads: queries, and what they hand to the projection
  std::uint64_t keys_, values_;   ///< widths of the keys and of the values that the NPU holds
  std::uint64_t mask_;
};

}  // namespace orrery::workload
