#pragma once

#include "layer.hpp"

namespace orrery::workload {

void validate(const Transformer& model, const Parallel& parallel);
std::vector<Layer> layers_of(const Transformer& model, const Parallel& parallel);
ParameterCount parameters_of(const Transformer& model);

}  // namespace orrery::workload
