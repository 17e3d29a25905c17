#pragma once

#include "orrery/config/serving.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/run/simulate.hpp"

namespace orrery::cli {

/// Runs a configuration that has `serving`, writes its results and prints a summary. Collective.
void serve(const config::ServingConfiguration& configuration, const run::RunOptions& options,
           parallel::Communicator& world);

}  // namespace orrery::cli
