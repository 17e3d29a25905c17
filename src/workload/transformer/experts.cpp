#include <algorithm>
#include <cmath>

#include "orrery/base/distribution.hpp"
#include "orrery/base/mix.hpp"
#include "transformer/layers.hpp"

namespace orrery::workload {

using trace::CollectiveKind;
using enum Operator::Kind;

ExpertLoad draw_expert_load(const Transformer& model, const Parallel& parallel, std::uint32_t layer,
                            std::optional<std::uint32_t> rank) {
  const ExpertDivision& division = parallel.experts;
  if (division.imbalance == 0) return {};
  const std::uint32_t ranks = parallel.num_expert_ranks(), each = model.mlp.experts / ranks;
  const auto draw = [&](std::uint32_t expert) {
    const std::uint64_t bits = mix(mix(mix(division.seed, 0x65787065727473U), layer), expert);
    return std::exp(division.imbalance * normal_quantile((static_cast<double>(bits >> 11U) + 0.5) * 0x1p-53));
  };
  double all = 0, most = 0, own = 0;
  for (std::uint32_t i = 0; i < ranks; ++i) {
    double load = 0;
    for (std::uint32_t k = 0; k < each; ++k) load += draw(i * each + k);
    all += load;
    most = std::max(most, load);
    if (rank == i) own = load;
  }
  const double mean = all / ranks;
  return {rank ? own / mean : 1, most / mean};
}

/// Returns how many of the NPU's experts get a token on the mean if each token picks top_k of all at random. A step of
/// inference may have few tokens, and reads only the weights of these.
std::uint64_t TransformerLayers::experts_with_rows() const {
  const double ranks = parallel_.num_expert_ranks(), experts = model_.mlp.experts;
  const double tokens = static_cast<double>(tokens_ * parallel_[Axis::ep]);
  const double without = std::pow(1 - model_.mlp.top_k / experts, tokens);
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(std::llround(experts / ranks * (1 - without))), 1);
}

/// Each token goes to top_k experts, which are spread over NPUs, and comes back. All experts get the same number, as
/// many as their capacity, or what is drawn for them; an exchange takes as long as that of the NPU that gets most.
/// Experts that every token passes compute while tokens travel, if the workload says so.
void TransformerLayers::experts(Layer& layer, const ExpertLoad& load) {
  const Transformer::Mlp& mlp = model_.mlp;
  const bool is_shared = parallel_.expert_tp() == tp_;  // the NPUs of a tp group compute parts of the same experts
  const std::uint64_t into = matrices_into(model_), width = model_.mlp_width() / parallel_.expert_tp();
  const std::uint64_t own_experts = mlp.experts / parallel_.num_expert_ranks();
  const std::uint64_t rows = std::max<std::uint64_t>(routed(is_shared ? tokens_ : own_tokens_, load.own), 1);
  const std::uint64_t own_rows = routed(own_tokens_, load.own);
  const std::uint64_t read_experts = parallel_.is_inference() ? std::min(experts_with_rows(), rows) : own_experts;
  const Operator router = operators_.product("experts.router", tokens_, hidden_ / tp_, mlp.experts);
  Operator first =
      operators_.weighted("experts.first", rows, hidden_, into * width, read_experts * hidden_ * into * width);
  const Operator activation = Operators::elementwise("experts.activation", (into + 1) * bytes_ * rows * width);
  Operator second = operators_.weighted("experts.second", rows, width, hidden_, read_experts * width * hidden_);
  // What all of an NPU's experts compute is as many products as it has experts.
  for (Operator* const op : {&first, &second}) {
    op->shape.m = std::max<std::uint64_t>(rows / read_experts, 1);
    op->shape.copies = read_experts;
  }
  const auto gather_rows = [&](std::vector<Operator>& operators, const char* name, Operator::Kind kind) {
    if (parallel_.sequence_parallel && is_shared)
      add_collective(operators, parallel_, kind, name, CollectiveKind::all_gather, GroupKind::tensor,
                     own_rows * hidden_ * bytes_);
  };
  const auto sum_rows = [&](std::vector<Operator>& operators) {
    if (is_shared) add_sum(operators, collective, "experts.sum", rows * hidden_ * bytes_);
  };
  const SharedExpert shared = shared_forward(), shared_back = shared_backward();
  const Exchange dispatch = exchange_of(load.most, true), combine = exchange_of(load.most, false);

  auto& forward = layer.forward;
  const std::size_t begin = forward.size();
  forward.insert(forward.end(), {own("experts.norm", 2 * bytes_), router});
  exchange(forward, "experts.dispatch", dispatch, shared.first);
  gather_rows(forward, "experts.all_gather", collective);
  forward.insert(forward.end(), {first, activation, second});
  sum_rows(forward);
  exchange(forward, "experts.combine", combine, shared.second);
  std::vector<Operator> backward = {own("experts.residual", (2 + mlp.top_k) * bytes_ + mask_)};
  if (recomputed_.experts) append_again(backward, forward, begin);
  forward.push_back(own("experts.residual", (2 + mlp.top_k) * bytes_ + mask_));

  exchange(backward, "experts.combine", dispatch, shared_back.second);
  gather_rows(backward, "experts.gradient.all_gather", collective);
  gather_rows(backward, "experts.input.all_gather", asynchronous);
  if (recomputed_.norms && !recomputed_.experts) backward.push_back(forward[begin]);
  if (recomputed_.activation && !recomputed_.experts) backward.push_back(activation);
  backward.insert(backward.end(),
                  {Operators::backward("experts.second", second), Operators::backward("experts.activation", activation),
                   Operator{.kind = wait}, Operators::backward("experts.first", first)});
  sum_rows(backward);
  exchange(backward, "experts.dispatch", combine, shared_back.first);
  backward.insert(backward.end(), {Operators::backward("experts.router", router), own("experts.norm", 4 * bytes_)});
  layer.backward.insert(layer.backward.begin(), backward.begin(), backward.end());
  count_experts(layer);
}

/// Tokens travel, and half of the shared expert is computed beside that or after it.
void TransformerLayers::exchange(std::vector<Operator>& operators, const char* name, const Exchange& made,
                                 const std::vector<Operator>& beside) const {
  const bool overlaps = parallel_.overlap.experts != ExpertOverlap::none &&
                        (!beside.empty() || parallel_.overlap.experts == ExpertOverlap::batches);
  add_collective(operators, parallel_, overlaps ? asynchronous : collective, name, made.kind, GroupKind::expert,
                 made.bytes);
  operators.insert(operators.end(), beside.begin(), beside.end());
  if (overlaps) operators.push_back({.kind = wait});
}

/// Kernels of experts send a token once to each server or expert, whatever its number of experts; their collectives
/// have the bytes of the tokens. FP8 has a scale of 4 bytes for 128 values. The gradients of what is combined are
/// dispatched, and those of what is dispatched are combined.
TransformerLayers::Exchange TransformerLayers::exchange_of(double load, bool to_experts) const {
  const Precision precision = precision_of_tokens(parallel_, to_experts);
  std::uint64_t bytes = operand_bytes(precision, hidden_);
  if (precision == Precision::fp8) bytes += (hidden_ + 127) / 128 * 4;
  if (!parallel_.has_expert_kernels()) return {CollectiveKind::all_to_all, routed(own_tokens_, load) * bytes};
  const double tokens = static_cast<double>(own_tokens_) * parallel_.experts.capacity * load;
  return {to_experts ? CollectiveKind::expert_dispatch : CollectiveKind::expert_combine,
          static_cast<std::uint64_t>(tokens) * bytes};
}

/// Counts the parameters of experts, router and shared experts.
void TransformerLayers::count_experts(Layer& layer) const {
  const Transformer::Mlp& mlp = model_.mlp;
  const std::uint64_t of_expert = (matrices_into(model_) + 1) * hidden_ * model_.mlp_width();
  layer.of_dense.norms += norm_parameters(model_);
  layer.dense += hidden_ * mlp.experts + (mlp.router_bias ? mlp.experts : 0) + norm_parameters(model_);
  layer.dense += mlp.shared_experts * of_expert / tp_;
  layer.experts += mlp.experts / parallel_.num_expert_ranks() * (of_expert / parallel_.expert_tp());
}

/// The shared expert gathers its tokens and computes its first product, and later its second one, whose results it adds
/// up.
TransformerLayers::SharedExpert TransformerLayers::shared_forward() {
  const std::uint64_t into = matrices_into(model_), width = model_.mlp.shared_experts * model_.mlp_width() / tp_;
  if (width == 0) return {};
  SharedExpert made;
  gather(made.first, "shared.all_gather");
  made.first.push_back(operators_.product("shared.first", tokens_, hidden_, into * width));
  made.second = {Operators::elementwise("shared.activation", (into + 1) * bytes_ * tokens_ * width),
                 operators_.product("shared.second", tokens_, width, hidden_)};
  sum(made.second, "shared.sum");
  return made;
}

TransformerLayers::SharedExpert TransformerLayers::shared_backward() {
  const std::uint64_t into = matrices_into(model_), width = model_.mlp.shared_experts * model_.mlp_width() / tp_;
  if (width == 0) return {};
  SharedExpert made;
  gather(made.second, "shared.gradient.all_gather");
  if (recomputed_.activation && !recomputed_.experts)
    made.second.push_back(Operators::elementwise("shared.activation", (into + 1) * bytes_ * tokens_ * width));
  made.second.push_back(
      Operators::backward("shared.second", operators_.product("shared.second", tokens_, width, hidden_)));
  made.second.push_back(Operators::elementwise("shared.activation", 2 * (into + 1) * bytes_ * tokens_ * width));
  gather(made.first, "shared.input.all_gather");
  made.first.push_back(
      Operators::backward("shared.first", operators_.product("shared.first", tokens_, hidden_, into * width)));
  sum(made.first, "shared.sum");
  return made;
}

}  // namespace orrery::workload
