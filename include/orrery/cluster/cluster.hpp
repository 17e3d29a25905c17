#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/cluster/options.hpp"
#include "orrery/cluster/schedule.hpp"
#include "orrery/cluster/step_level.hpp"
#include "orrery/cluster/summary.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::cluster {

/// The jobs of one replication, in the order of their numbers.
struct Jobs {
  std::vector<Job> jobs;
  std::vector<std::string> classes;  ///< names
  std::uint64_t left_out = 0;        ///< rows of a trace without NPUs
};
/// Returns the jobs of replication `number`: listed and recorded ones are the same in all. `trace`: the text of the
/// trace, if there is one. Throws Error (bad_input).
Jobs jobs_of(const Options& options, const std::string& trace, std::uint32_t number);

/// What all replications found, on every rank. Jobs and usage are those of replication 0, on rank 0 only.
struct Found {
  std::vector<Summary> summaries;  ///< [replications]
  Jobs jobs;
  Schedule schedule;
  SharingFound sharing;  ///< with Sharing::simulate, on every rank
};
/// Runs all replications: replication r on rank r mod ranks. With Sharing::simulate each rank runs all of them, and the
/// simulations that they need are divided among the ranks by `steps`, which may be null otherwise. Collective.
Found run(const Options& options, const std::string& trace, const Keep& keep, StepLevel* steps,
          parallel::Communicator& world);

/// Gives the classes that count steps of a workload the time of a step on a packed placement of each of their sizes.
/// Collective. Throws Error (bad_input).
void find_steps(Options& options, StepLevel& steps);

/// Throws Error (bad_input) for options that contradict each other, or a load above 1 unless `overload`.
void validate(const Options& options, bool overload);

}  // namespace orrery::cluster
