#include "estimates.hpp"

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::workload {
namespace {

void estimate(std::vector<Operator>& operators, const compute::ComputeModel& model) {
  for (Operator& op : operators) {
    if (op.kind != Operator::Kind::compute || op.duration > Time::zero()) continue;
    op.duration = model.estimate({.kind = op.operation,
                                  .name = op.name,
                                  .shape = op.shape,
                                  .is_backward = op.is_backward,
                                  .is_causal = op.is_causal,
                                  .flops = op.flops,
                                  .bytes = op.bytes});
    if (op.duration == Time::max())
      throw Error(ErrorCode::bad_input, {.key = "workload.model"},
                  fmt::format("operator {} takes longer than a run can simulate", op.name), "a smaller model");
  }
}

}  // namespace

void estimate(std::span<Layer> layers, const compute::ComputeModel& model) {
  for (Layer& layer : layers)
    for (auto* const operators : {&layer.forward, &layer.backward, &layer.recomputation}) estimate(*operators, model);
}

}  // namespace orrery::workload
