#pragma once

#include <optional>

#include "orrery/parallel/communicator.hpp"
#include "orrery/results/metrics.hpp"

namespace orrery::run {

/// Gives all ranks the metrics that rank 0 has. Collective. O(metrics).
void share_metrics(std::optional<results::Metrics>& metrics, parallel::Communicator& world);

}  // namespace orrery::run
