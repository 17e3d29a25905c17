#include "estimates.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

#include "operators.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::workload {
namespace {

compute::Operation operation_of(const Operator& op) {
  return {.kind = op.operation,
          .name = op.name,
          .shape = op.shape,
          .is_backward = op.is_backward,
          .is_causal = op.is_causal,
          .casts = op.casts,
          .is_inference = op.is_inference,
          .flops = op.flops,
          .bytes = op.bytes};
}

/// Says whether the operator's duration is the model's affair.
bool is_estimated(const Operator& op) { return op.kind == Operator::Kind::compute && op.duration == Time::zero(); }

/// Engines of inference launch the kernels of a layer ahead of the NPU, which waits only if they take less than that.
void leave_host_what_kernels_leave(std::vector<Operator>& operators) {
  Time kernels;
  for (const Operator& op : operators)
    if (op.kind == Operator::Kind::compute && std::string_view(op.name) != host_operator)
      kernels = kernels + op.duration;
  for (Operator& op : operators)
    if (std::string_view(op.name) == host_operator && op.is_inference)
      op.duration = kernels < op.duration ? op.duration - kernels : Time::zero();
}

void estimate(std::vector<Operator>& operators, const compute::ComputeModel& model) {
  for (Operator& op : operators)
    if (is_estimated(op)) op.duration = estimated(op, model);
  leave_host_what_kernels_leave(operators);
}

}  // namespace

Time estimated(const Operator& op, const compute::ComputeModel& model) {
  Time duration = model.estimate(operation_of(op));
  if (op.share < 1 && duration < Time::max())
    duration = Time::from_ps(static_cast<std::int64_t>(static_cast<double>(duration.ps()) * op.share));
  if (duration == Time::max())
    throw Error(ErrorCode::bad_input, {.key = "workload.model"},
                fmt::format("operator {} takes longer than a run can simulate", op.name), "a smaller model");
  return duration;
}

void estimate(std::span<Layer> layers, const compute::ComputeModel& model) {
  for (Layer& layer : layers)
    for (auto* const operators : {&layer.forward, &layer.backward, &layer.recomputation}) estimate(*operators, model);
}

std::vector<std::string> doubts_of(std::span<const Layer> layers, const compute::ComputeModel& model) {
  std::set<std::string> doubts;
  std::set<std::pair<std::string_view, bool>> seen;
  std::vector<compute::Operation> operations;
  for (const Layer& layer : layers)
    for (const auto* const operators : {&layer.forward, &layer.backward})
      for (const Operator& op : *operators)
        if (is_estimated(op) && seen.emplace(op.name, op.is_backward).second) {
          operations.push_back(operation_of(op));
          if (auto doubt = model.doubt(operations.back())) doubts.insert(std::move(*doubt));
        }
  for (const std::string& name : model.unused(operations))
    doubts.insert(fmt::format("kernels of '{}' are those of no operator of the workload", cited(name)));
  return {doubts.begin(), doubts.end()};
}

}  // namespace orrery::workload
