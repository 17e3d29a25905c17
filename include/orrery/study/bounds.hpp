#pragma once

#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/run/system.hpp"
#include "orrery/workload/outline.hpp"

namespace orrery::study {

/// Says whether `least_step_time` knows a bound: the workload has an outline (workload::has_outline), one step
/// is simulated under `physical` rules, all NPUs are as fast as others, and the network does not simulate links.
bool has_time_bound(const config::Configuration& configuration);

/// What is known of a step without a simulation.
struct StepBounds {
  Time step;                ///< is not shorter; 0: not known
  double compute = 0;       ///< seconds for which an NPU computes at least, the mean of all
  double flops_of_npu = 0;  ///< operations that an NPU executes at most, the mean of all; 0: not known
};

/// Returns the bounds of a step. `step` is what `least_step_time` returns. Throws and costs the same.
StepBounds bounds_of_step(const config::Configuration& configuration, run::System& system);

/// Returns what the time of a step is not below, without a simulation; 0 if nothing is known. docs/exploration.md,
/// *Bounds*, has the proof. `system` is that of the configuration. Throws Error (bad_input) as the run would. O(nodes
/// of a micro-batch + passes of all stages).
Time least_step_time(const config::Configuration& configuration, run::System& system);

/// Returns what the peak of local memory on the NPU that needs most is not below; 0 if nothing is known. O(layers +
/// passes of all stages).
Bytes least_peak_memory(const config::Configuration& configuration);

/// Returns the least times of the nodes of a stage; 0 where nothing is known. [nodes] Throws Error (bad_input) if an
/// algorithm cannot carry out one of the collectives. O(nodes + members of groups).
std::vector<Time> least_times(const workload::StageOutline& stage, const config::Configuration& configuration,
                              run::System& system);

}  // namespace orrery::study
