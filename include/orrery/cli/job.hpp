#pragma once

#include <functional>
#include <string_view>

#include "orrery/parallel/communicator.hpp"
#include "orrery/run/stop_guard.hpp"

namespace orrery::cli {

/// Prints the exception that is being handled on standard error, for an internal error with the rank: "rank 1 of 3"
/// (empty: the only one). Returns the exit code for it (docs/user-guide.md).
int report_failure(std::string_view rank = {});

/// The work of an MPI job. The guard has not been started.
using JobBody = std::function<void(parallel::Communicator& world, run::StopGuard& guard)>;

/// How a job ended.
struct JobEnd {
  int code = 0;          ///< exit code of the program
  bool in_order = true;  ///< whether all ranks have come to the end of the job, or know that it has failed
};

/// Runs `body` on all ranks of `world`, with a JobContext whose messages go to standard error. Each failure is printed
/// once. Collective, if it ends in order.
JobEnd run_job_on(parallel::Communicator& world, const JobBody& body);

/// Runs `body` as the only MPI job of this process and returns the exit code. After a failure that all ranks know of
/// (Communicator::agree) all ranks end in order. Any other failure ends all ranks at once.
int run_job(const JobBody& body);

}  // namespace orrery::cli
