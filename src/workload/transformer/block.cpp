#include <fmt/format.h>

#include "transformer/layers.hpp"

namespace orrery::workload {

/// After Korthikanti et al. (2022), section 4, but for any widths. What only products need is kept in their precision.
std::uint64_t TransformerLayers::block_activations(bool has_experts, const ExpertLoad& load) const {
  const Transformer::Mlp& mlp = model_.mlp;
  const std::uint64_t whole = own_tokens_ * hidden_, into = matrices_into(model_);
  const auto operands = [this](std::uint64_t values) { return operand_bytes(parallel_.precision, values); };
  const std::uint64_t of_norm = recomputed_.norms ? 0 : operands(whole);
  const bool keeps_heads = !(model_.is_latent() && recomputed_.latent);
  std::uint64_t result = whole * (2 * bytes_ + 2 * mask_) + of_norm;  // inputs of norms, masks, input of attention
  result += tokens_ * bytes_ * (result_ + (keeps_heads ? query_ + (keys_ + values_) * parallel_[Axis::cp] : 0));
  if (model_.is_latent())
    result += tokens_ * bytes_ * (model_.latent.query + model_.latent.key_value + model_.latent.rotary);
  if (!(has_experts ? recomputed_.experts : recomputed_.mlp)) {
    const bool is_shared = parallel_.expert_tp() == tp_;
    const std::uint64_t rows = has_experts ? routed(is_shared ? tokens_ : own_tokens_, load.own) : tokens_;
    const std::uint64_t width = has_experts ? model_.mlp_width() : model_.dense_width();
    const auto of_values = [&](std::uint64_t values) {
      return into * bytes_ * values + (recomputed_.activation ? 0 : operands(values));
    };
    result += has_experts ? operands(routed(own_tokens_, load.own) * hidden_) : of_norm;
    result += of_values(rows * (width / (has_experts ? parallel_.expert_tp() : tp_)));
    if (has_experts) result += of_values(tokens_ * (mlp.shared_experts * width / tp_));
  }
  if (!model_.attention.fused && parallel_.recompute != Recompute::selective)
    result += tokens_ * model_.sequence * (model_.attention.heads / tp_) * ((1 + mask_) * bytes_ + mask_);
  return result;
}

Layer TransformerLayers::block(std::uint32_t index) {
  Layer layer;
  layer.name = fmt::format("layer_{}", index);
  attention(layer);
  const bool has_experts = model_.has_experts(index);
  const ExpertLoad load = has_experts ? draw_expert_load(model_, parallel_, index, expert_rank_) : ExpertLoad{};
  if (has_experts)
    experts(layer, load);
  else
    mlp(layer, model_.dense_width());
  const bool is_recomputed = parallel_.recompute == Recompute::full;
  if (is_recomputed) layer.recomputation = layer.forward;
  const std::uint64_t all = block_activations(has_experts, load);
  layer.activations = is_recomputed ? own_tokens_ * hidden_ * bytes_ : all;
  layer.recomputed = all - layer.activations;
  layer.output = own_tokens_ * hidden_ * bytes_;
  if (parallel_.is_inference()) {
    layer.cache = operand_bytes(precision_of_cache(parallel_),
                                parallel_.micro_batch * model_.sequence / parallel_[Axis::cp] * cache_width());
    layer.activations = layer.recomputed = 0;
  }
  return layer;
}

}  // namespace orrery::workload
