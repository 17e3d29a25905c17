#pragma once

#include "orrery/base/quantity.hpp"
#include "orrery/config/configuration.hpp"

namespace orrery::study {

/// Returns about how much memory the simulation of a folded trial takes besides the program itself: what its nodes take
/// while they are generated, checked, folded and simulated. 0 if nothing is known, where a workload has no outline
/// (workload::has_outline). Throws Error (bad_input) as the run would. O(nodes of a micro-batch in stages that differ).
Bytes memory_of_simulation(const config::Configuration& configuration);

}  // namespace orrery::study
