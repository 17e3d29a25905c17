#pragma once

#include <span>

#include "layer.hpp"
#include "orrery/compute/model.hpp"

namespace orrery::workload {

/// Returns what the model estimates for an operator. Throws Error (bad_input) if that does not fit.
Time estimated(const Operator& op, const compute::ComputeModel& model);

/// Sets the duration of each compute operator that has none to what the model estimates. Throws Error (bad_input) if a
/// duration does not fit. Cost O(operators).
void estimate(std::span<Layer> layers, const compute::ComputeModel& model);

/// Returns what the model doubts of its estimates, of each operator once.
std::vector<std::string> doubts_of(std::span<const Layer> layers, const compute::ComputeModel& model);

}  // namespace orrery::workload
