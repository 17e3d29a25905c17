#pragma once

#include <string>

#include "orrery/base/faults.hpp"
#include "orrery/network/flow_run.hpp"
#include "section.hpp"

namespace orrery::config {

/// Reads `reductions` and `trees` of the section `workload` of a FLOWS.yaml into a scenario that has its graph. Faults
/// are added; what depends on several keys throws Error (bad_input).
void read_reductions(Section& workload, network::FlowScenario& scenario, Faults& faults);

}  // namespace orrery::config
