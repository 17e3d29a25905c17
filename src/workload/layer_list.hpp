#pragma once

#include "layer.hpp"

namespace orrery::workload {

void validate(const LayerList& model, const Parallel& parallel);
std::vector<Layer> layers_of(const LayerList& model, const Parallel& parallel);
ParameterCount parameters_of(const LayerList& model);

}  // namespace orrery::workload
