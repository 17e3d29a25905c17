#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "orrery/base/error.hpp"
#include "orrery/compute/model.hpp"
#include "orrery/serving/step_options.hpp"
#include "padding.hpp"
#include "ring.hpp"
#include "us_to_time.hpp"

namespace orrery::serving {
namespace {

using compute::Operation;

/// The operators of a transformer, each of which takes what the compute model of the system estimates.
class SystemOperators final : public StepModel {
 public:
  explicit SystemOperators(const StepContext& context)
      : options_(context.options),
        model_(*context.model),
        tp_(context.parallel.tp),
        weight_bytes_(context.weights->bytes),
        kv_bytes_(context.kv->bytes),
        ring_(tp_, options_) {}

  Time duration(const StepShape& shape, std::uint64_t) override {
    const std::uint64_t sequences = shape.sequences(), rows = padded(options_.graph_sizes, shape.tokens());
    auto [known, is_new] = of_rows_.try_emplace(rows);
    if (is_new) known->second = of_rows(rows);
    const auto [layer, ends] = known->second;
    const double reduce = ring_.all_reduce(whole(rows * model_.hidden) * activation);
    double us = ends + model_.layers * (layer + attention(shape) + 2 * reduce);
    us += product("output", sequences, model_.hidden, model_.embedding.vocabulary / tp_) + reduce +
          ring_.all_gather(whole(sequences * model_.embedding.vocabulary) * activation / tp_);
    const auto of_host = [](Time time) { return static_cast<double>(time.ps()) / 1e6; };
    us = std::max(us, model_.layers * of_host(options_.host.layer));
    return us_to_time(us + of_host(options_.host.step) + of_host(options_.host.sequence) * whole(sequences));
  }

 private:
  static constexpr std::uint64_t activation = 2;  // bytes

  static double whole(std::uint64_t value) { return static_cast<double>(value); }
  double estimate(const Operation& operation) const {
    return static_cast<double>(options_.compute->estimate(operation).ps()) / 1e6;
  }
  double product(std::string_view name, std::uint64_t m, std::uint64_t k, std::uint64_t n, double copies = 1) const {
    if (m == 0 || k == 0 || n == 0) return 0;
    const double bytes = whole((m * k + m * n) * activation) + whole(k * n) * weight_bytes_;
    return copies * estimate({.kind = Operation::Kind::product,
                              .name = name,
                              .shape = {.m = m, .k = k, .n = n},
                              .flops = 2 * m * k * n,
                              .bytes = static_cast<std::uint64_t>(bytes)});
  }
  double moved(std::string_view name, std::uint64_t values) const {
    return estimate({.kind = Operation::Kind::elementwise, .name = name, .bytes = values * activation});
  }

  std::uint64_t heads() const { return model_.attention.heads / tp_; }
  std::uint64_t kv_heads() const { return std::max<std::uint64_t>(1, model_.kv_heads() / tp_); }

  /// Returns the operators of a layer, and those at both ends of the model, that depend on rows alone.
  std::pair<double, double> of_rows(std::uint64_t rows) const {
    const std::uint64_t hidden = model_.hidden, head = model_.head_width();
    const std::uint64_t qkv = (heads() + 2 * kv_heads()) * head;
    double layer = 2 * moved("norm", 2 * rows * hidden) + 2 * moved("residual", 3 * rows * hidden);
    layer += product("attention.qkv", rows, hidden, qkv) + product("attention.output", rows, heads() * head, hidden);
    if (model_.attention.rotary) layer += moved("attention.rotary", 2 * rows * qkv);
    layer += model_.mlp.experts > 0 ? experts(rows) : mlp(rows, model_.mlp_width() / tp_, 1);
    return {layer, moved("embedding", 2 * rows * hidden) + moved("norm", 2 * rows * hidden)};
  }

  double mlp(std::uint64_t rows, std::uint64_t inner, double copies) const {
    const std::uint64_t wide = model_.mlp.gated ? 2 * inner : inner;
    return product("mlp.up", rows, model_.hidden, wide, copies) +
           product("mlp.down", rows, inner, model_.hidden, copies) +
           copies * moved("mlp.activation", rows * (wide + inner));
  }

  /// Returns the experts of a layer: those that have work, each with its share of the rows.
  double experts(std::uint64_t rows) const {
    const double all = model_.mlp.experts, top = model_.mlp.top_k;
    const double active = std::max(1.0, all * (1 - std::pow(1 - top / all, whole(rows))));
    const auto rows_of_each = static_cast<std::uint64_t>(std::ceil(whole(rows) * top / active));
    double us = product("mlp.router", rows, model_.hidden, model_.mlp.experts);
    us += mlp(rows_of_each, model_.mlp_width() / tp_, active);
    if (model_.mlp.shared_experts > 0) us += mlp(rows, model_.mlp.shared_experts * model_.mlp_width() / tp_, 1);
    return us;
  }

  /// Returns the core of attention: one operation for all requests that generate, and one for each chunk.
  double attention(const StepShape& shape) const {
    const std::uint64_t head = model_.head_width();
    const double kv_width = whole(2 * kv_heads() * head) * kv_bytes_;
    double us = 0;
    if (shape.decodes > 0) {
      const std::uint64_t pairs = shape.context_sum + shape.decodes;
      const double bytes = whole(pairs) * kv_width + whole(2 * shape.decodes * heads() * head * activation);
      us += estimate({.kind = Operation::Kind::attention,
                      .name = "attention.core",
                      .shape = {.m = 1, .k = head, .n = pairs / shape.decodes, .copies = shape.decodes * heads()},
                      .flops = 4 * pairs * heads() * head,
                      .bytes = static_cast<std::uint64_t>(bytes)});
    }
    for (const StepShape::Chunk& chunk : shape.chunks) {
      const std::uint64_t tokens = chunk.tokens, before = chunk.context;
      const double bytes = whole(before + tokens) * kv_width + whole(2 * tokens * heads() * head * activation);
      const bool is_first = before == 0;
      us +=
          estimate({.kind = Operation::Kind::attention,
                    .name = "attention.core",
                    .shape = {.m = tokens, .k = head, .n = before + tokens, .copies = heads()},
                    .is_causal = is_first,
                    .flops = 4 * heads() * head * (is_first ? tokens * tokens : tokens * before + tokens * tokens / 2),
                    .bytes = static_cast<std::uint64_t>(bytes)});
    }
    return us;
  }

  StepOptions options_;
  workload::Transformer model_;
  std::uint32_t tp_;
  double weight_bytes_, kv_bytes_;
  Ring ring_;
  std::unordered_map<std::uint64_t, std::pair<double, double>> of_rows_;
};

}  // namespace

extern const StepModelType system_operators;
constinit const StepModelType system_operators{
    .name = "system",
    .help = "operators that take what system.compute says: products, a table of kernels or the roofline",
    .needs_model = true,
    .make = [](const StepContext& context) -> std::shared_ptr<StepModel> {
      if (!context.options.compute)
        throw Error(ErrorCode::bad_input, {.key = "serving.step.model"},
                    "found system, but the file has no system whose compute model estimates operations",
                    "system.compute.model: products, table or roofline, or another model of steps");
      if (context.model->is_latent())
        throw Error(ErrorCode::bad_input, {.key = "serving.step.model"}, "found system for latent attention",
                    "step.model: profile or operators");
      return std::make_shared<SystemOperators>(context);
    }};

}  // namespace orrery::serving
