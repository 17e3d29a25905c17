#pragma once

#include <string>

#include "orrery/parallel/communicator.hpp"
#include "orrery/study/options.hpp"

namespace orrery::study {

/// `orrery explore`: simulates the configurations of a study, and writes and prints which are best. Collective. Throws
/// Error (bad_input, usage, output, interrupted).
void explore(const ExploreCommand& command, const std::string& command_line, parallel::Communicator& world);

/// `orrery best`: writes a study beside the output and explores it. Collective. Throws as explore does.
void best(const BestCommand& command, const std::string& command_line, parallel::Communicator& world);

}  // namespace orrery::study
