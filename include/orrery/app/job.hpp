#pragma once

#include <functional>
#include <string_view>

#include "orrery/parallel/communicator.hpp"

namespace orrery::app {

/// Says on standard error what the exception that is being handled is; of a fault of Orrery also on which rank it was,
/// "rank 1 of 3" (empty: the only one). Returns the exit code for it (docs/user-guide.md).
int report_failure(std::string_view rank = {});

/// Runs `body` as the one MPI job of this process and returns the exit code. A failure that all ranks know of
/// (Communicator::agree) ends in order; any other one ends all ranks at once. Either is said once.
int run_job(const std::function<void(parallel::Communicator&)>& body);

}  // namespace orrery::app
