#pragma once

#include <string>

#include "orrery/parallel/communicator.hpp"
#include "orrery/study/options.hpp"

namespace orrery::study {

/// Answers `orrery best MODEL --serve REQUESTS`: tries tensor parallelism, roles with their shares, and options of the
/// scheduler, and ranks them by the highest rate of requests that meets the SLO. Writes the best one as a CONFIG.yaml.
/// Collective: each rank tries its share.
void best_serving(const BestCommand& command, parallel::Communicator& world);

}  // namespace orrery::study
