#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orrery/config/configuration.hpp"
#include "orrery/config/read.hpp"
#include "orrery/serving/description.hpp"

namespace orrery::config {

/// A CONFIG.yaml with `serving` in place of `workload`.
struct ServingConfiguration {
  serving::Description serving;
  Configuration system;  ///< with the keys of `run`; without `system` in the file it has no dimensions
  bool has_system = false;
};

/// Says whether a configuration has the key `serving`. A file that cannot be read has not.
bool is_serving(const Inputs& inputs);

/// Returns what is wrong with such a configuration. Never throws for faults of it.
Faults faults_of_serving(const Inputs& inputs);

/// Reads such a configuration. Throws all faults as one Error (Faults::raise), as `read` does.
ServingConfiguration read_serving(const Inputs& inputs);

}  // namespace orrery::config
