#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "orrery/parallel/communicator.hpp"
#include "orrery/serving/description.hpp"
#include "orrery/serving/metrics.hpp"
#include "orrery/serving/simulate.hpp"

namespace orrery::results {

/// What a serving run writes. All but `inputs` and the texts count on rank 0 only.
struct ServingRun {
  const serving::Description& description;
  const serving::Scenario& scenario;
  const serving::Results& results;
  const serving::Metrics& metrics;
  std::vector<std::pair<std::string, std::string>> inputs;  ///< (name, text) of files that were read
  std::string command_line;
  bool force = false;
};

/// Writes /requests, /instances, /steps and /serving (docs/serving.md) to a new file. Returns its name on rank 0.
/// Throws Error (output). Collective.
std::filesystem::path write_serving(const std::filesystem::path& path, const ServingRun& run,
                                    parallel::Communicator& world);

}  // namespace orrery::results
