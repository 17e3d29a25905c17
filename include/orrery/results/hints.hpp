#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orrery/results/results.hpp"

namespace orrery::results {

/// Returns what a user can try to make the step shorter: at most three sentences, those that concern the most time
/// first. Each says what was found, with its share, and names the key to change. O(NPUs).
std::vector<std::string> hints_of(const Metrics& metrics, const RunDescription& run, const NpuRecords& npus);

/// Says which member keeps others waiting in collectives, and what it does before it joins them; none if the NPUs wait
/// for late members less than a tenth of their time. O(NPUs).
std::optional<std::string> hint_of_late_members(const Metrics& metrics, const NpuRecords& npus);

}  // namespace orrery::results
