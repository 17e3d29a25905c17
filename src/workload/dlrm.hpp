#pragma once

#include "layer.hpp"

namespace orrery::workload {

void validate(const Dlrm& model, const Parallel& parallel);
std::vector<Layer> layers_of(const Dlrm& model, const Parallel& parallel);
ParameterCount parameters_of(const Dlrm& model);

}  // namespace orrery::workload
