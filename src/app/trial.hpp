#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/read.hpp"

namespace orrery::app {

/// How a trial of a study ended.
enum class TrialStatus : std::uint8_t {
  done,
  excluded,      ///< a constraint on its metrics does not hold
  does_not_fit,  ///< an NPU needs more than its local memory
  refused,       ///< the configuration is faulty
  stuck,         ///< not all NPUs finished
};

struct Trial {
  TrialStatus status = TrialStatus::done;
  std::vector<double> metrics;  ///< [explore::metrics()], NaN where one is not known
  std::string text;             ///< why it is not done
};

/// Reads and simulates one configuration on this rank alone. Not collective. Faults of the configuration and runs that
/// get stuck are results; throws all other Errors. Returns nothing if `stop_requested` (see pdes::Options) ended it.
std::optional<Trial> simulate_trial(const config::Inputs& inputs, bool fold,
                                    const std::function<bool()>& stop_requested);

}  // namespace orrery::app
