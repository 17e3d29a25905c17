#include "dlrm.hpp"

#include <fmt/format.h>

#include <numeric>
#include <string_view>

#include "ops.hpp"
#include "orrery/base/error.hpp"
#include "refuse.hpp"

namespace orrery::workload {
namespace {

using trace::CollectiveKind;

struct Mlp {
  std::vector<Op> forward, backward;
  std::uint64_t parameters = 0;
  std::uint64_t values = 0;  ///< of a sample between and after the layers
};

/// Fully connected layers with biases, from `width` values on.
Mlp make_mlp(const Ops& ops, const char* name, std::uint64_t samples, std::uint64_t width,
             const std::vector<std::uint64_t>& widths) {
  Mlp mlp;
  for (const std::uint64_t next : widths) {
    const Op product = ops.product(name, samples, width, next);
    mlp.forward.push_back(product);
    mlp.backward.insert(mlp.backward.begin(), Ops::backward(name, product));
    mlp.parameters += (width + 1) * next;
    mlp.values += next;
    width = next;
  }
  return mlp;
}

/// What the interaction hands to the top MLP: a sample's dense vector and the products of all pairs.
std::uint64_t interaction_width(const Dlrm& model) {
  const std::uint64_t vectors = model.tables.size() + 1;
  return model.bottom.back() + vectors * (vectors - 1) / 2;
}

}  // namespace

std::vector<Layer> layers_of(const Dlrm& model, const Parallel& parallel) {
  const Ops ops(parallel);
  const std::uint64_t samples = parallel.micro_batch, width = model.bottom.back();
  const std::uint64_t vectors = model.tables.size() + 1, bytes = value_bytes(parallel.precision);
  const std::uint64_t pooled = samples * model.tables.size() * width;  // values, of the samples of one NPU

  // Each NPU looks up for all samples in its share of every table, which is as much as all tables for its own samples.
  Layer tables{.name = "tables"};
  tables.forward = {{.name = "lookup", .flops = pooled * model.pooling, .bytes = (model.pooling + 1) * pooled * bytes}};
  communicate(tables.forward, parallel, Op::Kind::aside, "all_to_all", CollectiveKind::all_to_all, GroupKind::data,
              pooled * bytes);
  tables.backward = {
      {.kind = Op::Kind::join},
      {.name = "update", .flops = 2 * pooled * model.pooling, .bytes = (2 * model.pooling + 1) * pooled * bytes}};
  const std::uint64_t rows = std::accumulate(model.tables.begin(), model.tables.end(), std::uint64_t{0});
  const std::uint64_t npus = parallel[Axis::dp];
  tables.sharded = (rows * width + npus - 1) / npus;
  tables.activations = pooled * bytes;

  Layer bottom{.name = "bottom"};
  const Mlp low = make_mlp(ops, "mlp", samples, model.dense_features, model.bottom);
  bottom.forward = low.forward;
  bottom.backward = low.backward;
  bottom.dense = low.parameters;
  bottom.activations = samples * (model.dense_features + low.values) * bytes;

  Layer top{.name = "top"};
  const Op pairs{.name = "interaction",
                 .flops = 2 * samples * vectors * vectors * width,
                 .bytes = bytes * samples * (vectors * width + interaction_width(model))};
  const Mlp high = make_mlp(ops, "mlp", samples, interaction_width(model), model.top);
  top.forward = {{.kind = Op::Kind::join}, pairs};
  top.forward.insert(top.forward.end(), high.forward.begin(), high.forward.end());
  top.backward = high.backward;
  top.backward.push_back(Ops::backward("interaction", pairs));
  communicate(top.backward, parallel, Op::Kind::aside, "all_to_all", CollectiveKind::all_to_all, GroupKind::data,
              pooled * bytes);
  top.dense = high.parameters;
  top.activations = samples * (interaction_width(model) + high.values) * bytes;
  return {tables, bottom, top};
}

ParameterCount parameters_of(const Dlrm& model) {
  const Parallel one;
  const Ops ops(one);
  const std::uint64_t rows = std::accumulate(model.tables.begin(), model.tables.end(), std::uint64_t{0});
  const std::uint64_t mlps = make_mlp(ops, "", 1, model.dense_features, model.bottom).parameters +
                             make_mlp(ops, "", 1, interaction_width(model), model.top).parameters;
  return {rows * model.bottom.back() + mlps, model.tables.size() * model.pooling * model.bottom.back() + mlps};
}

void validate(const Dlrm& model, const Parallel& parallel) {
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
  refuse_unless(parallel.prefetch == defaults.prefetch, "prefetch", "nothing");
  refuse_unless(parallel.schedule == defaults.schedule, "schedule", "nothing");
  refuse_unless(parallel.recompute == defaults.recompute, "recompute", "none");
  refuse_unless(parallel.detail == defaults.detail, "detail", "block");
  require_positive("workload.model.dense-features", model.dense_features);
  require_positive("workload.model.bottom", model.bottom.size());
  require_positive("workload.model.top", model.top.size());
  require_positive("workload.model.tables", model.tables.size());
  require_positive("workload.model.pooling", model.pooling);
  for (const auto* widths : {&model.bottom, &model.top})
    for (const std::uint64_t width : *widths)
      require_positive(widths == &model.bottom ? "workload.model.bottom" : "workload.model.top", width);
  const double samples = static_cast<double>(parallel.micro_batch), width = static_cast<double>(model.bottom.back());
  const double vectors = static_cast<double>(model.tables.size()) + 1;
  double inner = static_cast<double>(model.dense_features) + width + vectors * vectors, rows = 0;
  for (const auto* widths : {&model.bottom, &model.top})
    for (const std::uint64_t next : *widths) inner += static_cast<double>(next);
  for (const std::uint64_t table : model.tables) rows += static_cast<double>(table);
  require_countable("workload.model", "FLOPs in a layer", 2 * samples * inner * inner);
  require_countable("workload.model.pooling", "values looked up",
                    samples * vectors * width * static_cast<double>(model.pooling));
  require_countable("workload.model.tables", "parameters", rows * width);
}

}  // namespace orrery::workload
