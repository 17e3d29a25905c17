#include "orrery/workload/layer_list.hpp"

#include <fmt/format.h>

#include "layer.hpp"
#include "operators.hpp"
#include "orrery/base/error.hpp"
#include "requirements.hpp"

namespace orrery::workload {
namespace {

using trace::CollectiveKind;

/// Returns an operator that takes a given time, or none if that is 0.
std::vector<Operator> timed(const char* name, Time duration) {
  return duration > Time::zero() ? std::vector<Operator>{{.name = name, .duration = duration}}
                                 : std::vector<Operator>{};
}

/// Makes a layer. `input` is the number of values of a sample that it takes; it is unknown, and 0, for the first layer.
Layer make_layer(const LayerList::Layer& given, std::uint64_t input, const Parallel& parallel) {
  const std::uint64_t tp = parallel[Axis::tp], samples = parallel.micro_batch;
  const std::uint64_t bytes = value_bytes(parallel.precision);
  const std::uint64_t moved =
      operand_bytes(parallel.precision, given.parameters / tp + samples * (input + given.activations));
  const std::uint64_t flops = samples * given.flops / tp, double_flops = 2 * samples * given.flops / tp;
  const auto sum = [&](std::vector<Operator>& operators, std::uint64_t values) {
    add_collective(operators, parallel, Operator::Kind::collective, "sum", CollectiveKind::all_reduce,
                   GroupKind::tensor, samples * values * bytes);
  };
  Layer layer;
  layer.name = given.name;
  if (given.is_timed()) {
    layer.forward = timed("forward", given.forward);
    layer.backward = timed("backward", given.backward);
    for (Operator& op : layer.backward) op.has_weights = true;
    layer.update = given.update;
  } else {
    layer.forward = {{.name = "forward", .flops = flops, .bytes = moved}};
    layer.backward = {{.name = "backward", .flops = double_flops, .bytes = 2 * moved, .has_weights = true}};
  }
  sum(layer.forward, given.activations);
  if (input > 0) sum(layer.backward, input);
  if (parallel.recompute == Recompute::full) layer.recomputation = layer.forward;
  layer.dense = given.parameters / tp;
  layer.activations = samples * input * bytes;
  layer.output = samples * given.activations * bytes;
  return layer;
}

}  // namespace

std::vector<Layer> LayerList::make_layers(const Parallel& parallel) const {
  std::vector<workload::Layer> made;
  std::uint64_t input = 0;
  for (const auto& given : layers) {
    made.push_back(make_layer(given, input, parallel));
    input = given.activations;
  }
  return made;
}

ParameterCount LayerList::count_parameters() const {
  std::uint64_t all = 0;
  for (const auto& layer : layers) all += layer.parameters;
  return {all, all};
}

void LayerList::validate(const Parallel& parallel) const {
  require_positive("workload.model.layers", layers.size());
  for (const Axis axis : {Axis::cp, Axis::ep})
    if (parallel[axis] > 1)
      refuse(fmt::format("workload.parallel.{}", axis_names[static_cast<std::size_t>(axis)]), parallel[axis],
             "1: plain layers have neither tokens nor experts");
  if (parallel.sequence_parallel)
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.sp"}, "found true, but plain layers have no sequence",
                "false");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto key = [i](std::string_view name) { return fmt::format("workload.model.layers.{}.{}", i, name); };
    if (!layers[i].is_timed() || parallel[Axis::tp] > 1 || parallel[Axis::pp] > 1)
      require_positive(key("activations"), layers[i].activations);
    const double samples = static_cast<double>(parallel.micro_batch);
    require_countable(key("flops"), "FLOPs", samples * static_cast<double>(layers[i].flops));
    require_countable(key("activations"), "values", samples * static_cast<double>(layers[i].activations));
    require_multiple(key("flops"), layers[i].flops, "tp", parallel[Axis::tp]);
    require_multiple(key("parameters"), layers[i].parameters, "tp", parallel[Axis::tp]);
  }
}

}  // namespace orrery::workload
