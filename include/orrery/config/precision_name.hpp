#pragma once

#include <string_view>

#include "orrery/workload/parallel.hpp"

namespace orrery::config {

/// Returns how keys name a precision: "bf16", as in system.compute.peak.bf16.
std::string_view name_of(workload::Precision precision);

}  // namespace orrery::config
