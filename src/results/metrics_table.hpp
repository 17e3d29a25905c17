#pragma once

#include "hdf5_file.hpp"
#include "orrery/results/metrics.hpp"

namespace orrery::results {

/// The group /metrics. After /network, whose scale it uses.
void write_metrics(File& file, const Metrics& metrics);

}  // namespace orrery::results
