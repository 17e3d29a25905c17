#include <fmt/format.h>

#include "transformer/layers.hpp"

namespace orrery::workload {

/// After Korthikanti et al. (2022), section 4, but for any widths.
std::uint64_t TransformerLayers::block_activations(bool has_experts, const ExpertLoad& load) const {
  const Transformer::Mlp& mlp = model_.mlp;
  const std::uint64_t whole = own_tokens_ * hidden_, into = matrices_into(model_);
  std::uint64_t result = whole * (3 * bytes_ + 2 * mask_);  // norms, inputs, masks
  const bool is_shared = parallel_.expert_tp() == tp_;
  const std::uint64_t rows = has_experts ? routed(is_shared ? tokens_ : own_tokens_, load.own) : tokens_;
  result += (has_experts ? routed(own_tokens_, load.own) : own_tokens_) * hidden_ * bytes_;
  result += tokens_ * bytes_ * (query_ + result_ + (keys_ + values_) * parallel_[Axis::cp]);
  if (model_.is_latent())
    result += tokens_ * bytes_ * (model_.latent.query + model_.latent.key_value + model_.latent.rotary);
  const std::uint64_t width = has_experts ? model_.mlp_width() : model_.dense_width();
  result += rows * bytes_ * (into + 1) * (width / (has_experts ? parallel_.expert_tp() : tp_));
  if (has_experts) result += tokens_ * bytes_ * (into + 1) * (mlp.shared_experts * width / tp_);
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
    layer.cache = parallel_.micro_batch * model_.sequence / parallel_[Axis::cp] * cache_width() *
                  operand_bytes(parallel_.precision_of_cache());
    layer.activations = layer.recomputed = 0;
  }
  return layer;
}

}  // namespace orrery::workload
