#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "orrery/config/configuration.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/results/jobs.hpp"

/// Several jobs on one system: what is said of them, and what they would take without each other.
namespace orrery::run {

/// Returns what is known of the jobs before they run.
std::vector<results::JobDescription> describe_jobs(const config::Configuration& configuration);

/// Returns the generated workload that all NPUs execute from the start: the only one, or that of a job that has all
/// NPUs; null if there is none.
const workload::Description* workload_of_all(const config::Configuration& configuration);

/// Simulates each job without the others on the same NPUs, and sets JobDescription::alone. Returns the simulated time
/// at which a requested stop ended one of these runs; nothing if all of them are complete. Collective.
std::optional<Time> simulate_alone(const config::Configuration& configuration,
                                   const std::function<bool()>& stop_requested, parallel::Communicator& world,
                                   std::vector<results::JobDescription>& jobs);

}  // namespace orrery::run
