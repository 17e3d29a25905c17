#pragma once

#include "orrery/config/serving.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/serving/simulate.hpp"

namespace orrery::run {

/// Makes the scenario of a configuration, whose instances take the times of their collectives from the system. Throws as
/// serving::make_scenario does. Not collective.
serving::Scenario make_scenario(const config::ServingConfiguration& configuration);

/// Simulates the requests of a configuration, with the network and the jobs that it has beside them. Collective. Throws
/// as serving::simulate, and as run::prepare for the jobs.
serving::Results simulate_requests(const config::ServingConfiguration& configuration, const serving::Scenario& scenario,
                                   const serving::Control& control, parallel::Communicator& world);

}  // namespace orrery::run
