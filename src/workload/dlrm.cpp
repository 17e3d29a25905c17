#include "orrery/workload/dlrm.hpp"

#include <fmt/format.h>

#include <string>

#include "layer.hpp"
#include "operators.hpp"
#include "orrery/base/error.hpp"
#include "orrery/workload/table_placement.hpp"
#include "requirements.hpp"

namespace orrery::workload {
namespace {

using trace::CollectiveKind;
using enum Operator::Kind;

/// Fully connected layers with biases.
struct PlainMlp {
  std::vector<Operator> forward, backward;
  std::uint64_t parameters = 0;
  std::uint64_t values = 0;  ///< values of a sample between and after the layers
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

constexpr std::uint64_t index_bytes = 8;  // of the number of a row

/// Returns the values that a sample looks up.
std::uint64_t lookups(const Dlrm& model) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < model.tables.size(); ++i) sum += model.pooling_of(i) * model.width_of(i);
  return sum;
}

/// Returns the values of a sample's vectors, one of each table.
std::uint64_t vector_values(const Dlrm& model) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < model.tables.size(); ++i) sum += model.width_of(i);
  return sum;
}

std::uint64_t table_parameters(const Dlrm& model) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < model.tables.size(); ++i) sum += model.tables[i].rows * model.width_of(i);
  return sum;
}

/// Returns the values of a sample that the interaction hands to the top MLP: all vectors that have gone through the
/// cross layers; or its dense vector, and the products of all pairs of vectors.
std::uint64_t interaction_width(const Dlrm& model) {
  const std::uint64_t vectors = model.tables.size() + 1;
  return model.bottom.back() + (model.cross_layers > 0 ? vector_values(model) : vectors * (vectors - 1) / 2);
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
        placement_(model, parallel),
        samples_(parallel.micro_batch),
        bytes_(value_bytes(parallel.precision)) {}

  /// Each NPU looks up for all samples in what it holds. The numbers of the rows of the next step travel meanwhile.
  Layer tables(std::optional<std::uint32_t> kind) const {
    Layer layer{.name = "tables"};
    const TableShare share = kind ? placement_.shares()[*kind] : placement_.mean();
    const std::uint64_t read = samples_ * share.read, pooled = samples_ * share.pooled;  // values
    add_exchange(layer.forward, "indices", CollectiveKind::all_to_all, placement_.indices() * index_bytes);
    layer.forward.push_back({.name = "lookup", .flops = read, .bytes = (read + pooled) * bytes_});
    add_exchange(layer.forward, "all_to_all", CollectiveKind::all_to_all, placement_.exchanged() * bytes_);
    add_exchange(layer.forward, "reduce_scatter", CollectiveKind::reduce_scatter, placement_.summed() * bytes_);
    layer.backward = {{.kind = wait}, {.name = "update", .flops = 2 * read, .bytes = (2 * read + pooled) * bytes_}};
    layer.sharded = share.parameters;
    layer.activations = samples_ * vector_values(model_) * bytes_;
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
    add_exchange(layer.backward, "all_to_all", CollectiveKind::all_to_all, placement_.exchanged() * bytes_);
    add_exchange(layer.backward, "all_gather", CollectiveKind::all_gather,
                 placement_.summed() / parallel_[Axis::dp] * bytes_);
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
  /// Adds a collective of so many bytes for each sample of an NPU.
  void add_exchange(std::vector<Operator>& operators, const char* name, CollectiveKind kind,
                    std::uint64_t bytes) const {
    add_collective(operators, parallel_, asynchronous, name, kind, GroupKind::data, samples_ * bytes);
  }

  const Dlrm& model_;
  const Parallel& parallel_;
  Operators operators_;
  TablePlacement placement_;
  std::uint64_t samples_, bytes_;
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
  const double samples = static_cast<double>(parallel.micro_batch), npus = parallel[Axis::dp];
  const double vectors = static_cast<double>(model.tables.size()) + 1;
  double values = static_cast<double>(model.bottom.back()), read = 0, parameters = 0;
  for (std::size_t i = 0; i < model.tables.size(); ++i) {
    const double width = static_cast<double>(model.width_of(i));
    values += width;
    read += width * static_cast<double>(model.pooling_of(i));
    parameters += width * static_cast<double>(model.tables[i].rows);
  }
  double inner =
      static_cast<double>(model.dense_features) + static_cast<double>(model.bottom.back()) + vectors * vectors;
  if (model.cross_layers > 0) inner += values + static_cast<double>(model.cross_rank);
  for (const auto* widths : {&model.bottom, &model.top})
    for (const std::uint64_t next : *widths) inner += static_cast<double>(next);
  require_countable("workload.model", "FLOPs in a layer", 2 * samples * inner * inner);
  require_countable("workload.model.pooling", "values looked up", samples * npus * read);
  require_countable("workload.model.tables", "parameters", parameters);
}

}  // namespace

std::vector<Layer> Dlrm::make_layers(const Parallel& parallel, std::optional<std::uint32_t> kind) const {
  const DlrmLayers layers(*this, parallel);
  return {layers.tables(kind), layers.bottom(), layers.top()};
}

std::vector<std::uint32_t> Dlrm::kinds_of_npus(const Parallel& parallel) const {
  return TablePlacement(*this, parallel).kinds();
}

ParameterCount Dlrm::count_parameters() const {
  const Parallel one;
  const Operators operators(one);
  const std::uint64_t dense = make_mlp(operators, "", 1, dense_features, bottom).parameters + cross_parameters(*this) +
                              make_mlp(operators, "", 1, interaction_width(*this), top).parameters;
  return {table_parameters(*this) + dense, lookups(*this) + dense};
}

std::uint64_t Dlrm::width_of(std::size_t table) const {
  return tables[table].width > 0 ? tables[table].width : bottom.back();
}

std::uint64_t Dlrm::pooling_of(std::size_t table) const {
  if (tables[table].pooling > 0) return tables[table].pooling;
  return poolings.empty() ? pooling : poolings[table];
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
  require_positive("workload.parallel.table-columns", parallel.sharding.tables.columns);
  for (const std::uint64_t width : bottom) require_positive("workload.model.bottom", width);
  for (const Table& table : tables) {
    require_positive("workload.model.tables.rows", table.rows);
    if (cross_layers == 0 && table.width > 0 && table.width != bottom.back())
      refuse("workload.model.tables.width", table.width,
             fmt::format("{}, that of the last layer of workload.model.bottom, or workload.model.cross-layers: "
                         "products of pairs need vectors of one width",
                         bottom.back()));
  }
  for (const std::uint64_t width : top) require_positive("workload.model.top", width);
  require_countable_work(*this, parallel);
}

}  // namespace orrery::workload
