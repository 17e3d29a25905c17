#pragma once

#include <string>
#include <vector>

#include "orrery/results/results.hpp"

namespace orrery::results {

/// Returns what a user can try to make the step shorter: at most three sentences, those that concern the most time
/// first. Each says what was found, with its share, and names the key to change. O(NPUs).
std::vector<std::string> hints_of(const Metrics& metrics, const RunDescription& run, const NpuRecords& npus);

}  // namespace orrery::results
