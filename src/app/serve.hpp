#pragma once

#include <string>

#include "orrery/config/command_line.hpp"
#include "orrery/config/serving.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/run/simulate.hpp"
#include "orrery/serving/simulate.hpp"

namespace orrery::app {

/// Simulates the requests of a configuration, with the network and the jobs that it has beside them. Collective. Throws
/// as serving::simulate, and as run::prepare for the jobs.
serving::Results simulate_requests(const config::ServingConfiguration& configuration, const serving::Scenario& scenario,
                                   const serving::Control& control, parallel::Communicator& world);

/// Runs a configuration that has `serving`, writes its results and prints a summary. Collective.
void serve(const config::ServingConfiguration& configuration, const run::RunOptions& options,
           parallel::Communicator& world);

}  // namespace orrery::app
