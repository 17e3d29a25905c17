#pragma once

#include <string>
#include <vector>

#include "orrery/config/configuration.hpp"
#include "orrery/results/results.hpp"

namespace orrery::run {

/// Returns warnings about a run that took less time than its bytes need on the links of a dimension, or on those of the
/// NPU that sent most. Networks that simulate links cannot do so. On rank 0. O(NPUs).
std::vector<std::string> capacity_warnings(const results::Gathered& all, const config::Configuration& configuration);

}  // namespace orrery::run
