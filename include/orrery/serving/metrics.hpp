#pragma once

#include <cstdint>

#include "orrery/serving/description.hpp"
#include "orrery/serving/simulate.hpp"

namespace orrery::serving {

/// Mean and percentiles of a time, in ps. Percentiles lie linearly between order statistics. NaN if there is none.
struct TimeFigures {
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0;
};

/// What a run says of the requests that arrive in its window.
struct Metrics {
  std::uint64_t requests = 0;
  TimeFigures ttft, tpot, latency;
  TimeFigures itl;      ///< all gaps between tokens; percentiles to 1 %
  double span = 0;      ///< s, over which rates are taken
  double makespan = 0;  ///< s, from the first arrival to the last end
  double requests_per_s = 0, output_tokens_per_s = 0, total_tokens_per_s = 0;
  std::uint32_t npus = 0;
  double slo_attainment = 1;  ///< share of requests that meet the SLO; 1 without one
  double goodput = 0;         ///< requests/s that meet it
  double prefix_hit_share = 0;
  double kv_use_mean = 0;                     ///< mean over instances and time
  double running_mean = 0, waiting_mean = 0;  ///< requests of an instance, likewise
  std::uint64_t preemptions = 0, transferred_tokens = 0;
};

/// Returns the metrics of a run on rank 0. Throws Error (bad_input) if no request arrives in the window. O(requests log
/// requests).
Metrics metrics_of(const Description& description, const Scenario& scenario, const Results& results);

}  // namespace orrery::serving
