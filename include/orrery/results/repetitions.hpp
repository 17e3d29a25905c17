#pragma once

#include <cstdint>
#include <span>

#include "orrery/base/time.hpp"

namespace orrery::results {

/// One run of several that differ in the seed of what is drawn.
struct Repetition {
  std::uint32_t seed = 0;
  Time simulated_time;
};

/// What several repetitions say of the simulated time, in ps.
struct RepetitionFigures {
  double mean = 0;
  double deviation = 0;  ///< standard deviation of a sample: with the number of repetitions less 1
  double least = 0, most = 0;
  /// Bounds of the 95 % confidence interval of the mean, by Student's t.
  double low = 0, high = 0;
};

/// Returns the figures of two or more repetitions.
RepetitionFigures figures_of(std::span<const Repetition> repetitions);

/// Returns the t that a variable with Student's distribution of `freedom` degrees of freedom, 1 or more, is within, to
/// both sides, with the probability `confidence`, above 0 and below 1. Cost O(freedom). Source: Abramowitz and Stegun,
/// "Handbook of Mathematical Functions", 26.7.3 and 26.7.4.
double student_t(std::uint64_t freedom, double confidence);

}  // namespace orrery::results
