#pragma once

#include <string>

#include "orrery/cli/command_line.hpp"

namespace orrery::cli {

/// Sends the messages of the program to standard error, as "orrery: warning: TEXT". To be called once in a process.
void start_log();

/// Runs a subcommand and returns the exit code of the program (docs/user-guide.md). `command_line` is what the user
/// wrote, for the results of a run. Subcommands that are MPI jobs are run by `launch`, which reports their failures.
/// Throws Error for a failure of any other subcommand.
int execute(const Command& command, const std::string& command_line, const JobLauncher& launch = run_job);

}  // namespace orrery::cli
