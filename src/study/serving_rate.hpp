#pragma once

#include <functional>
#include <optional>

#include "orrery/config/serving.hpp"
#include "orrery/serving/metrics.hpp"
#include "orrery/serving/simulate.hpp"

namespace orrery::study {

/// A serving run on this rank alone.
struct ServedAlone {
  serving::Scenario scenario;
  serving::Results results;
  serving::Metrics metrics;
};

/// Simulates the requests of a configuration on this rank alone. Throws Error as serving::make_scenario and
/// serving::simulate do, and (interrupted) if `stop_requested`. Not collective.
ServedAlone serve_alone(const config::ServingConfiguration& configuration, const std::function<bool()>& stop_requested);

/// The highest rate at which enough requests meet the SLO.
struct HighestRate {
  double scale = 0;           ///< factor of the rate of the requests; 0: no rate that was tried
  double requests_per_s = 0;  ///< requests that arrive in a second then
  /// Share by which the rate may exceed one that can be sustained: the limit of TTFT over the time in which the
  /// requests arrive. A queue that grows more slowly is not seen before the last of them.
  double most_excess = 0;
  serving::Metrics metrics;  ///< metrics at that rate
};

/// Finds the highest rate by bisection, until two rates of which one is met and one is not differ by `accuracy` at the
/// most. All runs see the same requests, at other times. Requests that all arrive at once are not tried: the scale is
/// 1024 at the most. Throws as serve_alone; not collective.
HighestRate highest_rate(config::ServingConfiguration configuration, double accuracy,
                         const std::function<bool()>& stop_requested);

}  // namespace orrery::study
