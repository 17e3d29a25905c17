#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/config/read.hpp"

namespace orrery::app {

/// How a trial of a study ended.
enum class TrialStatus : std::uint8_t {
  done,
  excluded,      ///< a constraint on its metrics does not hold
  does_not_fit,  ///< an NPU needs more than its local memory
  refused,       ///< the configuration is faulty
  stuck,         ///< not all NPUs finished
  ruled_out,     ///< its bounds say that it is not among the best
};

struct Trial {
  TrialStatus status = TrialStatus::done;
  std::vector<double> metrics;  ///< [explore::metrics()], NaN where one is not known
  std::string text;             ///< why it is not done

  /// Returns a trial without metrics.
  static Trial ended(TrialStatus status, std::string text);
};

/// What is known of a trial without a simulation.
struct TrialEstimate {
  Time step;                       ///< is not shorter; 0: not known
  Bytes peak_memory;               ///< is not less
  double samples = 0, tokens = 0;  ///< of a step
  /// Exact, or not less than this; 0 where prices are not known.
  double capex = 0, power = 0, energy = 0, price = 0;
  double work = 1;                 ///< of the simulation, for comparison

  /// Returns what a metric is not better than; NaN if nothing is known.
  double bound(std::string_view metric) const;
};

/// Estimates trials one after the other. What they have in common is made once.
class TrialEstimator {
 public:
  TrialEstimator();
  ~TrialEstimator();

  struct Result {
    TrialEstimate estimate;
    std::optional<Trial> settled;  ///< if the configuration is faulty or does not fit
  };
  /// Not collective.
  Result estimate(const config::Inputs& inputs);

 private:
  struct Common;
  std::unique_ptr<Common> common_;
};

/// Reads and simulates one configuration on this rank alone. Not collective. Faults of the configuration and runs that
/// get stuck are results; throws all other Errors. Returns nothing if `stop_requested` (see pdes::Options) ended it.
std::optional<Trial> simulate_trial(const config::Inputs& inputs, bool fold,
                                    const std::function<bool()>& stop_requested);

}  // namespace orrery::app
