#include "orrery/workload/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "operators.hpp"
#include "requirements.hpp"
#include "transformer/layers.hpp"

namespace orrery::workload {
namespace {

void require_even_division(const Transformer& model, const Parallel& parallel) {
  const std::uint64_t tp = parallel[Axis::tp], cp = parallel[Axis::cp];
  const std::uint32_t heads = model.attention.heads, kv_heads = model.attention.kv_heads;
  if (model.attention.head_size == 0) require_multiple("workload.model.hidden", model.hidden, "heads", heads);
  if (kv_heads > 0) require_multiple("workload.model.heads", heads, "kv-heads", kv_heads);
  require_divides("workload.parallel.tp", tp, heads, "heads");
  if (tp > model.kv_heads())
    require_multiple("workload.parallel.tp", tp, "kv-heads", model.kv_heads());
  else
    require_divides("workload.parallel.tp", tp, model.kv_heads(), "heads of keys and values");
  require_divides("workload.parallel.tp", tp, model.hidden, "values of the hidden width");
  require_divides("workload.parallel.tp", tp, model.mlp_width(), "values of the MLP's width (ffn)");
  require_divides("workload.parallel.tp", tp, model.dense_width(), "values of the MLP's width (dense-ffn)");
  require_divides("workload.parallel.tp", tp, model.embedding.vocabulary, "words of the vocabulary");
  require_divides("workload.parallel.cp", cp, model.sequence, "tokens of a sequence");
  if (parallel.sequence_parallel)
    require_divides("workload.parallel.tp", tp, model.sequence / cp, "tokens of a sequence on an NPU");
}

void require_countable_work(const Transformer& model, const Parallel& parallel) {
  const double hidden = static_cast<double>(model.hidden), sequence = static_cast<double>(model.sequence);
  const double query = static_cast<double>(model.query_width());
  const double used = std::max(model.mlp.top_k + model.mlp.shared_experts, 1U);
  const double width = static_cast<double>(std::max(model.mlp_width(), model.dense_width()));
  const double matrices = hidden * (4 * query + 3 * used * width + static_cast<double>(model.mlp.experts) +
                                    static_cast<double>(model.embedding.vocabulary));
  require_countable("workload.model", "FLOPs in a layer",
                    2 * static_cast<double>(parallel.micro_batch) * sequence * (matrices + 2 * sequence * query));
  require_countable("workload.model", "parameters", model.layers * (matrices + 3 * hidden * width * model.mlp.experts));
}

void require_experts(const Transformer& model, const Parallel& parallel) {
  const Transformer::Mlp& mlp = model.mlp;
  if (mlp.experts == 0) {
    if (parallel[Axis::ep] > 1) refuse("workload.parallel.ep", parallel[Axis::ep], "1: the model has no experts");
    const std::pair<std::string_view, std::uint64_t> of_experts[] = {
        {"workload.model.top-k", mlp.top_k},
        {"workload.model.shared-experts", mlp.shared_experts},
        {"workload.model.dense-layers", mlp.dense_layers},
        {"workload.model.dense-ffn", mlp.dense_width}};
    for (const auto& [key, value] : of_experts)
      if (value > 0) refuse(key, value, "0, or experts");
    if (mlp.interval > 1) refuse("workload.model.expert-interval", mlp.interval, "1, or experts");
    return;
  }
  require_multiple("workload.model.experts", mlp.experts, parallel.expert_tp() == 1 ? "ep * tp" : "ep",
                   parallel.num_expert_ranks());
  if (mlp.top_k == 0 || mlp.top_k > mlp.experts)
    refuse("workload.model.top-k", mlp.top_k, fmt::format("1 to {} experts", mlp.experts));
  if (mlp.dense_layers + mlp.interval > model.layers)
    refuse("workload.model.dense-layers", mlp.dense_layers,
           fmt::format("so few that one of the {} layers has experts", model.layers));
}

void require_latent(const Transformer& model) {
  const Transformer::Latent& latent = model.latent;
  if (!model.is_latent()) {
    for (const auto& [key, value] :
         {std::pair<std::string_view, std::uint64_t>{"workload.model.latent.query", latent.query},
          {"workload.model.latent.rotary", latent.rotary},
          {"workload.model.latent.value", latent.value}})
      if (value > 0) refuse(key, value, "nothing, or workload.model.latent.key-value");
    return;
  }
  if (model.attention.kv_heads > 0)
    refuse("workload.model.kv-heads", model.attention.kv_heads, "0: latent attention has as many as heads");
}

/// Adds what the software does besides: sums of gradients by a kernel of their own, which reads what products made and
/// reads and writes the sum, and waits for the host.
void add_extras(Layer& layer, const Parallel& parallel) {
  const Extras& extras = parallel.extras;
  const std::uint64_t parameters = layer.dense + layer.experts;
  if (!extras.fused_gradients && parameters > 0 && !parallel.is_inference())
    layer.backward.push_back(Operators::elementwise(
        "gradients", parameters * (value_bytes(parallel.precision) + 2 * value_bytes(parallel.gradients))));
  if (extras.host == Time::zero()) return;
  for (auto* const operators : {&layer.forward, &layer.recomputation, &layer.backward})
    if (!operators->empty())
      operators->push_back(
          {.name = host_operator.data(), .duration = extras.host, .is_inference = parallel.is_inference()});
}

}  // namespace

std::vector<Layer> Transformer::make_layers(const Parallel& parallel, std::optional<std::uint32_t> expert_rank) const {
  TransformerLayers maker(*this, parallel, expert_rank);
  const bool has_ends = embedding.vocabulary > 0;
  std::vector<Layer> made;
  if (has_ends) made.push_back(maker.embedding());
  for (std::uint32_t i = 0; i < layers; ++i) made.push_back(maker.block(i));
  if (has_ends) made.push_back(maker.output());
  for (Layer& layer : made) add_extras(layer, parallel);
  return made;
}

std::uint64_t Transformer::latent_parameters(std::uint64_t tp) const {
  const std::uint64_t own_heads = attention.heads / tp, ranks = latent.query + latent.key_value;
  const std::uint64_t down = hidden * (ranks + latent.rotary) + ranks;
  const std::uint64_t queries = (latent.query > 0 ? latent.query : hidden) * own_heads * query_head();
  const std::uint64_t keys = latent.key_value * own_heads * (head_width() + value_head());
  return down + queries + keys + own_heads * value_head() * hidden;
}

ParameterCount Transformer::count_parameters() const {
  const std::uint64_t h = hidden, q = query_width(), kv = kv_heads() * head_width(), norm = norm_parameters(*this);
  const std::uint64_t into = matrices_into(*this), heads = attention.head_norms ? 2 * head_width() : 0;
  const std::uint64_t plain = h * (2 * q + 2 * kv) + (biases ? q + 2 * kv + h : 0);
  const std::uint64_t in_all = (is_latent() ? latent_parameters(1) : plain) + heads + 2 * norm;  // of each block
  const std::uint64_t dense = (into + 1) * h * dense_width() + (biases ? into * dense_width() + h : 0);
  const std::uint64_t expert = (into + 1) * h * mlp_width();
  const std::uint64_t routing = h * mlp.experts + (mlp.router_bias ? mlp.experts : 0) + mlp.shared_experts * expert;
  const std::uint64_t with_all = routing + mlp.experts * expert, with_used = routing + mlp.top_k * expert;
  ParameterCount count;
  const auto add_block = [&](std::uint32_t index) {
    count.all += in_all + (has_experts(index) ? with_all : dense);
    count.active += in_all + (has_experts(index) ? with_used : dense);
  };
  for (std::uint32_t i = 0; i < layers; ++i) add_block(i);
  if (embedding.vocabulary == 0) return count;
  std::uint64_t ends = embedding.vocabulary * h * (embedding.tied ? 1 : 2) + norm;
  ends += embedding.learned_positions ? sequence * h : 0;
  for (std::uint32_t i = 0; i < further_tokens; ++i) {
    add_block(layers - 1);
    ends += 2 * h * h + 3 * norm;
  }
  count.all += ends;
  count.active += ends;
  return count;
}

void Transformer::validate(const Parallel& parallel) const {
  require_positive("workload.model.layers", layers);
  require_positive("workload.model.hidden", hidden);
  require_positive("workload.model.heads", attention.heads);
  require_positive("workload.model.sequence", sequence);
  require_even_division(*this, parallel);
  require_countable_work(*this, parallel);
  require_experts(*this, parallel);
  require_latent(*this);
  if (further_tokens > 0 && embedding.vocabulary == 0)
    refuse("workload.model.further-tokens", further_tokens, "0, or a vocabulary");
}

}  // namespace orrery::workload
