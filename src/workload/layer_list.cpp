#include "layer_list.hpp"

#include <fmt/format.h>

#include "ops.hpp"
#include "orrery/base/error.hpp"
#include "refuse.hpp"

namespace orrery::workload {

using trace::CollectiveKind;

namespace {

/// Operators that take a given time; none if that is none.
std::vector<Op> timed(const char* name, Time duration) {
  return duration > Time::zero() ? std::vector<Op>{{.name = name, .duration = duration}} : std::vector<Op>{};
}

}  // namespace

std::vector<Layer> layers_of(const LayerList& model, const Parallel& parallel) {
  const std::uint64_t tp = parallel[Axis::tp], samples = parallel.micro_batch;
  const std::uint64_t bytes = value_bytes(parallel.precision), operands = operand_bytes(parallel.precision);
  std::vector<Layer> layers;
  std::uint64_t input = 0;  // values of a sample; unknown, and left out, for the first layer
  for (const auto& given : model.layers) {
    Layer layer;
    layer.name = given.name;
    const std::uint64_t moved = operands * (given.parameters / tp + samples * (input + given.activations));
    const bool is_timed = given.is_timed();
    if (is_timed)
      layer.forward = timed("forward", given.forward);
    else
      layer.forward = {{.name = "forward", .flops = samples * given.flops / tp, .bytes = moved}};
    communicate(layer.forward, parallel, Op::Kind::collective, "sum", CollectiveKind::all_reduce, GroupKind::tensor,
                samples * given.activations * bytes);
    if (parallel.recompute == Recompute::full) layer.again = layer.forward;
    layer.backward =
        is_timed ? timed("backward", given.backward)
                 : std::vector<Op>{{.name = "backward", .flops = 2 * samples * given.flops / tp, .bytes = 2 * moved}};
    if (is_timed) layer.update = given.update;
    if (input > 0)
      communicate(layer.backward, parallel, Op::Kind::collective, "sum", CollectiveKind::all_reduce, GroupKind::tensor,
                  samples * input * bytes);
    layer.dense = given.parameters / tp;
    layer.activations = samples * input * bytes;
    layer.output = samples * given.activations * bytes;
    input = given.activations;
    layers.push_back(std::move(layer));
  }
  return layers;
}

ParameterCount parameters_of(const LayerList& model) {
  std::uint64_t all = 0;
  for (const auto& layer : model.layers) all += layer.parameters;
  return {all, all};
}

void validate(const LayerList& model, const Parallel& parallel) {
  require_positive("workload.model.layers", model.layers.size());
  for (const Axis axis : {Axis::cp, Axis::ep})
    if (parallel[axis] > 1)
      refuse(fmt::format("workload.parallel.{}", axis_names[static_cast<std::size_t>(axis)]), parallel[axis],
             "1: plain layers have neither tokens nor experts");
  if (parallel.sequence_parallel)
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.sp"}, "found true, but plain layers have no sequence",
                "false");
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto key = [i](std::string_view name) { return fmt::format("workload.model.layers.{}.{}", i, name); };
    if (!model.layers[i].is_timed() || parallel[Axis::tp] > 1 || parallel[Axis::pp] > 1)
      require_positive(key("activations"), model.layers[i].activations);
    const double samples = static_cast<double>(parallel.micro_batch);
    require_countable(key("flops"), "FLOPs", samples * static_cast<double>(model.layers[i].flops));
    require_countable(key("activations"), "values", samples * static_cast<double>(model.layers[i].activations));
    require_multiple(key("flops"), model.layers[i].flops, "tp", parallel[Axis::tp]);
    require_multiple(key("parameters"), model.layers[i].parameters, "tp", parallel[Axis::tp]);
  }
}

}  // namespace orrery::workload
