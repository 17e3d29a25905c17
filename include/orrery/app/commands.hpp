#pragma once

#include <string>

#include "orrery/config/command_line.hpp"

namespace orrery::app {

/// Runs a subcommand and returns the exit code of the program (docs/user-guide.md). `command_line` is what the user
/// wrote, for the results of a run. Throws Error, but for `orrery run`, which is an MPI job and reports its failures
/// itself (run_job).
int execute(const config::Command& command, const std::string& command_line);

}  // namespace orrery::app
