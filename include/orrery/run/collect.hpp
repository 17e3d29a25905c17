#pragma once

#include <optional>
#include <string>

#include "orrery/config/configuration.hpp"
#include "orrery/cost/cost.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/results/results.hpp"
#include "orrery/run/preparation.hpp"
#include "orrery/run/simulation.hpp"
#include "orrery/workload/figures.hpp"

/// Collects what the results of a run are written from.
namespace orrery::run {

/// Returns what this rank knows when the run has ended. In a folded run the timelines are of all NPUs that this rank
/// has read, and the collectives of all groups for which its communicators stand. Collective. Cost O(records).
results::RankResults collect(const Preparation& preparation, const Simulation& simulation,
                             parallel::Communicator& world);

/// Returns what all ranks know of the run, without what only rank 0 needs.
results::RunDescription describe(const config::Configuration& configuration, const Preparation& preparation,
                                 const Simulation& simulation, const std::string& command_line);

/// Returns what the metrics need to know of a step of a generated workload.
results::TrainingStep training_step(const config::Configuration& configuration, const workload::Description& generated,
                                    const workload::Figures& figures);

/// Returns what the system costs; nothing without prices.
std::optional<cost::Hardware> hardware_of(const config::Configuration& configuration);

}  // namespace orrery::run
