#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/run/system.hpp"
#include "orrery/study/bounds.hpp"
#include "orrery/workload/model_outline.hpp"

namespace orrery::study {

/// Bounds of many steps on one system: what their passes take, without messages and what comes after the passes. Steps
/// whose layers are alike share what is known of them. The configurations differ in the generated workload only, and
/// the system is always the same.
class QuickBounds {
 public:
  QuickBounds();
  ~QuickBounds();

  /// Returns what the time of a step is not below. It is not above `least_step_time`, which needs the nodes of all
  /// stages. For steps that have a bound of the time (has_time_bound). Throws Error (bad_input) as the run would.
  /// O(virtual stages), the first time with such layers O(nodes of a micro-batch in a few layers).
  Time least_step_time(const config::Configuration& configuration, run::System& system) {
    return bounds_of_step(configuration, system).step;
  }
  /// Returns the same with the time for which NPUs compute. It does not know the FLOPs.
  StepBounds bounds_of_step(const config::Configuration& configuration, run::System& system);
  /// Returns what `least_peak_memory` returns. For steps that have an outline (workload::has_outline). Cost as
  /// workload::ModelOutline::least_peak_memory.
  Bytes least_peak_memory(const config::Configuration& configuration);

 private:
  /// The least times of the passes through some layers; `weights` where backward passes are divided.
  struct PassTimes {
    Time forward, backward, weights;
    Time compute;  ///< compute time of all passes

    Time all() const { return forward + backward + weights; }
  };
  /// Layers, and what is known of their times.
  struct Known;

  Known& known_of(const config::Configuration& configuration);
  PassTimes times_through(Known& known, const workload::LayerRuns& runs, bool is_divided,
                          const config::Configuration& configuration, run::System& system);
  static PassTimes times_of_nodes(const workload::StageOutline& passes, const config::Configuration& configuration,
                                  run::System& system);

  std::unordered_multimap<std::size_t, std::unique_ptr<Known>> known_;  ///< known outlines by ModelOutline::hash
};

}  // namespace orrery::study
