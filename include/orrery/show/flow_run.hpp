#pragma once

#include <filesystem>

#include "orrery/network/flow_run.hpp"

namespace orrery::show {

/// Prints how long the flows of each class took, what the links did, and, where they were recorded, meetings and
/// queues.
void print_flow_run(const network::FlowScenario& scenario, const network::FlowResults& results);

/// Writes all results of the flows as JSON. Throws Error (output).
void write_flow_run(const std::filesystem::path& path, const network::FlowScenario& scenario,
                    const network::FlowResults& results);

}  // namespace orrery::show
