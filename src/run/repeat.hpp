#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "orrery/config/configuration.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/results/repetitions.hpp"
#include "orrery/run/preparation.hpp"
#include "orrery/run/simulation.hpp"

/// Runs that differ only in the seed of what is drawn.
namespace orrery::run {

class Checkpoints;

/// Returns the simulated time of a run with the present seed, on all ranks. Collective.
results::Repetition repetition_of(const Simulation& simulation, const config::Configuration& configuration,
                                  parallel::Communicator& world);

/// Runs what is left of perturbation.repetitions with the seeds after that of `first`, adding one row to `all` for each
/// run that is complete. The preparation is of `configuration`, serves again where it does not depend on the seed, and
/// is replaced where it does. Returns the simulated time at which a requested stop ended one of them; nothing if all of
/// them are complete. `checkpoints`: null if there are none. Collective.
std::optional<Time> repeat(config::Configuration& configuration, std::unique_ptr<Preparation>& preparation,
                           const std::function<bool()>& stop_requested, parallel::Communicator& world,
                           Checkpoints* checkpoints, std::vector<results::Repetition>& all);

}  // namespace orrery::run
