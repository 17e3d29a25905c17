#pragma once

#include <cstdint>

#include "contradiction.hpp"
#include "orrery/config/configuration.hpp"
#include "value.hpp"

namespace orrery::config {

/// Gives the dimensions of a system the sizes that hold `system.npus`, if the root has it: the first dimensions are
/// filled first, so that servers stay whole, and the last one takes what is left. Faults are a number that does not
/// fill whole groups, and a system whose dimensions have no plain sizes.
void fill_dimensions(Value& root, Faults& faults);

/// Says of degrees of parallelism whose product is not the number of NPUs which of them to change.
Contradiction contradiction_of_product(const Configuration& configuration, const workload::Parallel& parallel,
                                       std::uint32_t num_npus);

}  // namespace orrery::config
