#pragma once

#include <functional>
#include <string_view>

#include "orrery/parallel/communicator.hpp"

namespace orrery::app {

/// Prints the exception that is being handled on standard error, for an internal error with the rank: "rank 1 of 3"
/// (empty: the only one). Returns the exit code for it (docs/user-guide.md).
int report_failure(std::string_view rank = {});

/// Runs `body` as the only MPI job of this process and returns the exit code. After a failure that all ranks know of
/// (Communicator::agree) all ranks end in order. Any other failure ends all ranks at once. Each failure is printed
/// once.
int run_job(const std::function<void(parallel::Communicator&)>& body);

}  // namespace orrery::app
