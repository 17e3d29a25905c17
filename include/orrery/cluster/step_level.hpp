#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/cluster/job.hpp"
#include "orrery/cluster/options.hpp"

namespace orrery::cluster {

/// A job on NPUs of the system.
struct PlacedJob {
  std::uint32_t job_class = 0;      ///< among those of StepLevel
  std::vector<std::uint32_t> npus;  ///< NPUs in the order of the job's own NPUs

  friend bool operator==(const PlacedJob&, const PlacedJob&) = default;
  friend auto operator<=>(const PlacedJob&, const PlacedJob&) = default;
};

/// What a simulation finds of a job that has the system for itself.
struct AloneStep {
  double seconds = 0;                ///< time of a step
  std::vector<std::uint32_t> links;  ///< links that its messages pass, ascending
};

/// Simulates steps of jobs. All functions are collective, with the same arguments on all ranks, and return the same.
class StepLevel {
 public:
  virtual ~StepLevel() = default;

  /// Returns the number of the class with this name. Throws Error (bad_input) if it has no workload.
  virtual std::uint32_t class_of(const std::string& name) = 0;
  /// Returns a placement whose steps take as long as those of `jobs` do (P6): numbers of NPUs are changed by a symmetry
  /// of the network, so that equal ones are simulated once.
  virtual std::vector<PlacedJob> signature(std::vector<PlacedJob> jobs) const = 0;
  /// Simulates each job alone. The links are those of the placement as given.
  virtual std::vector<AloneStep> alone(const std::vector<PlacedJob>& jobs) = 0;
  /// Simulates the jobs of each component together, and returns the time of a step over `alone` (seconds), the mean
  /// over four offsets of their starts. `alone`: [components][jobs]. What is below 1 is 1.
  virtual std::vector<std::vector<double>> together(const std::vector<std::vector<PlacedJob>>& components,
                                                    const std::vector<std::vector<double>>& alone) = 0;
};

/// Jobs that share links, and how much longer their steps take.
struct Component {
  std::vector<std::string> classes;  ///< names, in the order of the jobs
  std::vector<std::uint32_t> npus;   ///< NPUs of each job
  std::vector<double> factors;
  std::uint64_t times = 0;  ///< how often it came up
};

/// What was simulated for a run.
struct SharingFound {
  std::uint64_t placements = 0;  ///< jobs alone that were simulated
  std::vector<Component> components;
};
inline constexpr std::size_t most_components = 20'000;

}  // namespace orrery::cluster
