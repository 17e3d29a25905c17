#include "orrery/workload/dlrm.hpp"

#include <fmt/format.h>

#include <numeric>
#include <string>

#include "layer.hpp"
#include "operators.hpp"
#include "orrery/base/error.hpp"
#include "requirements.hpp"

namespace orrery::workload {
namespace {

using trace::CollectiveKind;
using enum Operator::Kind;

/// Fully connected layers with biases.
struct PlainMlp {
  std::vector<Operator> forward, backward;
  std::uint64_t parameters = 0;
  std::uint64_t values = 0;  ///< of a sample between and after the layers
};

/// Makes an MLP that takes `width` values of a sample and whose layers have these widths.
PlainMlp make_mlp(const Operators& operators, const char* name, std::uint64_t samples, std::uint64_t width,
                  const std::vector<std::uint64_t>& widths) {
  PlainMlp mlp;
  for (const std::uint64_t next : widths) {
    const Operator product = operators.product(name, samples, width, next);
    mlp.forward.push_back(product);
    mlp.backward.insert(mlp.backward.begin(), Operators::backward(name, product));
    mlp.parameters += (width + 1) * next;
    mlp.values += next;
    width = next;
  }
  return mlp;
}

/// Returns the values of a sample that the interaction hands to the top MLP: all vectors that have gone through the
/// cross layers; or its dense vector, and the products of all pairs of vectors.
std::uint64_t interaction_width(const Dlrm& model) {
  const std::uint64_t vectors = model.tables.size() + 1;
  return model.cross_layers > 0 ? vectors * model.bottom.back() : model.bottom.back() + vectors * (vectors - 1) / 2;
}

/// Returns the parameters of the cross layers: two matrices of low rank and a bias in each.
std::uint64_t cross_parameters(const Dlrm& model) {
  return model.cross_layers * interaction_width(model) * (2 * model.cross_rank + 1);
}

/// Makes the layers; all sizes are those of one NPU and one micro-batch.
class DlrmLayers {
 public:
  DlrmLayers(const Dlrm& model, const Parallel& parallel)
      : model_(model),
        parallel_(parallel),
        operators_(parallel),
        samples_(parallel.micro_batch),
        bytes_(value_bytes(parallel.precision)),
        pooled_(samples_ * model.tables.size() * model.bottom.back()) {}

  /// Each NPU looks up for all samples in its share of every table. That is as much as looking up in all tables for its
  /// own samples.
  Layer tables() const {
    Layer layer{.name = "tables"};
    const std::uint64_t rows_read = samples_ * model_.lookups() * model_.bottom.back();  // values
    layer.forward = {{.name = "lookup", .flops = rows_read, .bytes = (rows_read + pooled_) * bytes_}};
    exchange(layer.forward);
    layer.backward = {{.kind = wait},
                      {.name = "update", .flops = 2 * rows_read, .bytes = (2 * rows_read + pooled_) * bytes_}};
    const std::uint64_t rows = std::accumulate(model_.tables.begin(), model_.tables.end(), std::uint64_t{0});
    const std::uint64_t npus = parallel_[Axis::dp];
    layer.sharded = (rows * model_.bottom.back() + npus - 1) / npus;
    layer.activations = pooled_ * bytes_;
    return layer;
  }

  Layer bottom() const {
    Layer layer{.name = "bottom"};
    const PlainMlp mlp = make_mlp(operators_, "mlp", samples_, model_.dense_features, model_.bottom);
    layer.forward = mlp.forward;
    layer.backward = mlp.backward;
    layer.dense = mlp.parameters;
    layer.activations = samples_ * (model_.dense_features + mlp.values) * bytes_;
    return layer;
  }

  Layer top() const {
    Layer layer{.name = "top"};
    const std::uint64_t interaction = interaction_width(model_);
    const PlainMlp mlp = make_mlp(operators_, "mlp", samples_, interaction, model_.top);
    const Interaction between = model_.cross_layers > 0 ? cross_layers() : pairs();
    layer.forward = {{.kind = wait}};
    layer.forward.insert(layer.forward.end(), between.forward.begin(), between.forward.end());
    layer.forward.insert(layer.forward.end(), mlp.forward.begin(), mlp.forward.end());
    layer.backward = mlp.backward;
    layer.backward.insert(layer.backward.end(), between.backward.begin(), between.backward.end());
    exchange(layer.backward);
    layer.dense = mlp.parameters + cross_parameters(model_);
    layer.activations = samples_ * (interaction * (1 + model_.cross_layers) + mlp.values) * bytes_;
    return layer;
  }

 private:
  struct Interaction {
    std::vector<Operator> forward, backward;
  };
  /// Multiplies all pairs of vectors of a sample.
  Interaction pairs() const {
    const std::uint64_t vectors = model_.tables.size() + 1, width = model_.bottom.back();
    const Operator pairs{.name = "interaction",
                         .flops = 2 * samples_ * vectors * vectors * width,
                         .bytes = bytes_ * samples_ * (vectors * width + interaction_width(model_))};
    return {{pairs}, {Operators::backward("interaction", pairs)}};
  }
  /// Each layer multiplies what it takes by two matrices of low rank, and the result by the first layer's input.
  Interaction cross_layers() const {
    const std::uint64_t width = interaction_width(model_);
    const Operator down = operators_.product("cross.down", samples_, width, model_.cross_rank);
    const Operator up = operators_.product("cross.up", samples_, model_.cross_rank, width);
    const Operator multiply = Operators::elementwise("cross.multiply", 4 * samples_ * width * bytes_);
    const Operator back = Operators::elementwise("cross.multiply", 6 * samples_ * width * bytes_);
    Interaction made;
    for (std::uint32_t i = 0; i < model_.cross_layers; ++i) {
      made.forward.insert(made.forward.end(), {down, up, multiply});
      made.backward.insert(made.backward.end(),
                           {back, Operators::backward("cross.up", up), Operators::backward("cross.down", down)});
    }
    return made;
  }
  /// The pooled vectors, or their gradients, go to the NPUs that need them.
  void exchange(std::vector<Operator>& operators) const {
    add_collective(operators, parallel_, asynchronous, "all_to_all", CollectiveKind::all_to_all, GroupKind::data,
                   pooled_ * bytes_);
  }

  const Dlrm& model_;
  const Parallel& parallel_;
  Operators operators_;
  std::uint64_t samples_, bytes_;
  std::uint64_t pooled_;  ///< values that are looked up and pooled for the samples of one NPU
};

void require_division_by_dp(const Parallel& parallel) {
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep, Axis::pp})
    if (parallel[axis] > 1)
      refuse(std::string("workload.parallel.") + std::string(axis_names[static_cast<std::size_t>(axis)]),
             parallel[axis], "1: a DLRM is divided by dp, its tables among all NPUs");
  if (parallel.interleaving > 1)
    refuse("workload.parallel.interleaving", parallel.interleaving, "1: there is one stage");
  const Parallel defaults;
  const auto refuse_unless = [](bool is_default, std::string_view key, std::string_view only) {
    if (!is_default)
      throw Error(ErrorCode::bad_input, {.key = fmt::format("workload.parallel.{}", key)},
                  "it has no meaning for a DLRM", only);
  };
  refuse_unless(parallel.sequence_parallel == defaults.sequence_parallel, "sp", "false");
  refuse_unless(parallel.sharding.replicas == defaults.sharding.replicas, "replicas", "1");
  refuse_unless(parallel.sharding.prefetch == defaults.sharding.prefetch, "prefetch", "nothing");
  refuse_unless(parallel.pipeline.schedule == defaults.pipeline.schedule, "schedule", "nothing");
  refuse_unless(parallel.recompute == defaults.recompute, "recompute", "none");
  refuse_unless(parallel.detail == defaults.detail, "detail", "block");
}

void require_countable_work(const Dlrm& model, const Parallel& parallel) {
  const double samples = static_cast<double>(parallel.micro_batch), width = static_cast<double>(model.bottom.back());
  const double vectors = static_cast<double>(model.tables.size()) + 1;
  double inner = static_cast<double>(model.dense_features) + width + vectors * vectors, rows = 0;
  if (model.cross_layers > 0) inner += vectors * width + static_cast<double>(model.cross_rank);
  for (const auto* widths : {&model.bottom, &model.top})
    for (const std::uint64_t next : *widths) inner += static_cast<double>(next);
  for (const std::uint64_t table : model.tables) rows += static_cast<double>(table);
  require_countable("workload.model", "FLOPs in a layer", 2 * samples * inner * inner);
  require_countable("workload.model.pooling", "values looked up",
                    samples * width * static_cast<double>(model.lookups()));
  require_countable("workload.model.tables", "parameters", rows * width);
}

}  // namespace

std::vector<Layer> Dlrm::make_layers(const Parallel& parallel) const {
  const DlrmLayers layers(*this, parallel);
  return {layers.tables(), layers.bottom(), layers.top()};
}

ParameterCount Dlrm::count_parameters() const {
  const Parallel one;
  const Operators operators(one);
  const std::uint64_t rows = std::accumulate(tables.begin(), tables.end(), std::uint64_t{0});
  const std::uint64_t dense = make_mlp(operators, "", 1, dense_features, bottom).parameters + cross_parameters(*this) +
                              make_mlp(operators, "", 1, interaction_width(*this), top).parameters;
  return {rows * bottom.back() + dense, lookups() * bottom.back() + dense};
}

std::uint64_t Dlrm::lookups() const {
  if (poolings.empty()) return tables.size() * pooling;
  return std::accumulate(poolings.begin(), poolings.end(), std::uint64_t{0});
}

void Dlrm::validate(const Parallel& parallel) const {
  require_division_by_dp(parallel);
  require_positive("workload.model.dense-features", dense_features);
  require_positive("workload.model.bottom", bottom.size());
  require_positive("workload.model.top", top.size());
  require_positive("workload.model.tables", tables.size());
  require_positive("workload.model.pooling", pooling);
  if (!poolings.empty() && poolings.size() != tables.size())
    refuse("workload.model.poolings", poolings.size(), fmt::format("{}, one for each table", tables.size()));
  if (cross_layers > 0) require_positive("workload.model.cross-rank", cross_rank);
  for (const std::uint64_t width : bottom) require_positive("workload.model.bottom", width);
  for (const std::uint64_t width : top) require_positive("workload.model.top", width);
  require_countable_work(*this, parallel);
}

}  // namespace orrery::workload
