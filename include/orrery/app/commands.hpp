#pragma once

#include <string>

#include "orrery/config/command_line.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::app {

/// `orrery run`. Collective. Throws Error on the rank that knows, parallel::FailedElsewhere on others.
void run(const config::RunCommand& command, const std::string& command_line, parallel::Communicator& world);

/// `orrery check`: prints every fault on standard error. Returns the exit code.
int check(const config::CheckCommand& command);

void generate(const config::GenerateCommand& command);
void partition(const config::PartitionCommand& command);
void show(const config::ShowTraceCommand& command);
void show(const config::ShowTopologyCommand& command);
void show(const config::ShowCollectiveCommand& command);
void show(const config::ShowKernelCommand& command);
void show(const config::ShowTimelineCommand& command);
void show(const config::ShowKeysCommand& command);

/// What `orrery --version` prints.
std::string version_text();

}  // namespace orrery::app
