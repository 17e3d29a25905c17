#pragma once

#include <string>
#include <vector>

#include "orrery/config/configuration.hpp"

namespace orrery::config {

/// What a prediction rests on, as a stack says it (`provenance`, docs/calibration.md).
struct Provenance {
  /// Values of a key for which the numbers of the stack were fitted.
  struct Range {
    std::string key;
    double least = 0, most = 0;
  };
  /// A measured step to which they were fitted.
  struct Known {
    std::string name;
    double npus = 0, parameters = 0, sequence = 0;
  };

  std::string basis;     ///< basis of the numbers, and the steps to which they were fitted
  double deviation = 0;  ///< standard deviation of the logarithm of a measured time over the predicted one
  std::vector<Range> ranges;
  std::vector<Known> steps;
};

/// Returns the provenance of the configuration, or the one that holds without a stack. Cost O(its size).
Provenance provenance_of(const Configuration& configuration);
/// Returns the name of the step of the stack that is nearest to the workload in NPUs, parameters and sequence; empty
/// if it names none.
std::string nearest_step(const Provenance& provenance, double npus, double parameters, double sequence);
/// Returns a warning for each key of the configuration that lies outside the range in which the stack was fitted. Cost
/// O(size of the configuration).
std::vector<std::string> outside_of_ranges(const Provenance& provenance, const Configuration& configuration);

}  // namespace orrery::config
