#pragma once

#include <string>

#include "orrery/config/command_line.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::study {

/// `orrery explore`: simulates the configurations of a study, and writes and prints which are best. Collective. Throws
/// Error (bad_input, usage, output, interrupted).
void explore(const config::ExploreCommand& command, const std::string& command_line, parallel::Communicator& world);

/// `orrery best`: writes a study beside the output and explores it. Collective. Throws as explore does.
void best(const config::BestCommand& command, const std::string& command_line, parallel::Communicator& world);

}  // namespace orrery::study
