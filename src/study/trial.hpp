#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/config/variants.hpp"
#include "orrery/results/breakdown.hpp"
#include "orrery/study/bounds.hpp"

namespace orrery::study {

/// How a trial of a study ended.
enum class TrialStatus : std::uint8_t {
  done,
  excluded,      ///< a constraint on its metrics does not hold
  does_not_fit,  ///< an NPU needs more than its local memory
  refused,       ///< the configuration is faulty
  stuck,         ///< not all NPUs finished
  ruled_out,     ///< its bounds say that it is not among the best
  failed,        ///< a fault of the program, or more memory than there is
  timed_out,     ///< it took longer than a trial may
};

struct Trial {
  TrialStatus status = TrialStatus::done;
  std::vector<double> metrics;  ///< [results::study_metrics()], then perhaps results::figures_of; NaN where one is not
                                ///< known. Empty: none is
  std::string text;             ///< why it is not done

  results::BreakdownOf<double> breakdown{};  ///< shares of the NPUs' time; zeros where nothing was simulated

  /// Returns a metric by its position in results::study_metrics().
  double metric(std::size_t position) const {
    return position < metrics.size() ? metrics[position] : std::numeric_limits<double>::quiet_NaN();
  }
  /// Returns a trial without metrics.
  static Trial ended(TrialStatus status, std::string text);
};

/// What is known of a trial without a simulation.
struct TrialEstimate {
  Time step;                       ///< is not shorter; 0: not known
  Bytes peak_memory;               ///< is not less
  double samples = 0, tokens = 0;  ///< samples and tokens of a step
  /// Exact, or not less than this; 0 where prices are not known.
  double capex = 0, power = 0, energy = 0, price = 0;
  /// Seconds in which all NPUs at their peak would do what the model needs, and no fewer than what they execute; 0: not
  /// known.
  double seconds_of_model = 0, seconds_of_execution = 0;
  double work = 1;  ///< work of the simulation, for comparison

  /// Returns what a metric is not better than; NaN if nothing is known.
  double bound(std::string_view metric) const;
  /// Says whether metrics of this name have a bound at all.
  static bool knows(std::string_view metric);
  /// Says whether a bound is the most that the metric can be, and not the least.
  static bool is_most(std::string_view metric);
};

/// Estimates trials one after the other. What they have in common is made once.
class TrialEstimator {
 public:
  /// `has_flops`: estimates know the FLOPs too.
  explicit TrialEstimator(bool has_flops = false);
  ~TrialEstimator();

  struct Result {
    TrialEstimate estimate;
    std::optional<Trial> settled;  ///< if the configuration is faulty or does not fit
    bool is_best = true;           ///< no better estimate is known
  };
  /// Returns the best estimate. Not collective.
  Result estimate(config::Variants& variants, const std::vector<std::string>& settings);
  /// Returns one that costs less, of the time of the passes only (QuickBounds). It says of no trial more than the best
  /// one does, and the same of memory. Not collective.
  Result estimate_quickly(config::Variants& variants, const std::vector<std::string>& settings);

 private:
  struct Common;
  static std::optional<StepBounds> bounds_of_step(const config::Configuration& configuration, Common& common,
                                                  bool is_quick);
  void add_bounds(const config::Configuration& configuration, bool is_quick, Result& result);
  Result estimate(config::Variants& variants, const std::vector<std::string>& settings, bool is_quick);

  bool has_flops_;
  std::unique_ptr<Common> common_;
};

struct TrialOptions {
  bool fold = true;       ///< NPUs that are alike are simulated once
  bool figures = false;   ///< all figures of results belong to the metrics
  Bytes max_memory = {};  ///< a trial whose simulation needs more by estimate is refused; 0: none is
};
/// Simulates one configuration on this rank alone, and changes those of its options that say what is recorded. Not
/// collective. Faults of the configuration and runs that get stuck are results; throws all other Errors. Returns
/// nothing if `stop_requested`, which it asks from time to time, ended it.
std::optional<Trial> simulate_trial(config::Configuration& configuration, const TrialOptions& options,
                                    const std::function<bool()>& stop_requested);
/// Reads and simulates one configuration.
std::optional<Trial> simulate_trial(config::Variants& variants, const std::vector<std::string>& settings,
                                    const TrialOptions& options, const std::function<bool()>& stop_requested);

/// Reads a configuration that serves requests, and simulates it on this rank alone. `finds_rate`: whether it looks for
/// the highest rate that meets the SLO, too. Faults are results, as those of other trials are. Not collective.
std::optional<Trial> simulate_serving_trial(const config::Inputs& inputs, bool finds_rate,
                                            const std::function<bool()>& stop_requested);

/// Throws Error (internal), which names the trial, if one of its metrics is better than the bound.
void require_above_bounds(std::uint64_t number, const Trial& trial, const TrialEstimate& estimate);

}  // namespace orrery::study
