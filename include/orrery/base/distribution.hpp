#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

/// How the factors of a distribution are spread.
enum class DistributionKind : std::uint8_t {
  uniform,      ///< every factor from `least` to `most` alike
  normal,       ///< around `mean` with `deviation`, cut off at `least` and `most`
  lognormal,    ///< around `median`, with `deviation` of the logarithm, cut off likewise
  tail,         ///< `factor` with `probability`, else 1
  exponential,  ///< with `probability` 1 plus an exponential with the mean `excess`, cut off at `most`; else 1
  values,       ///< one of `values`, all alike
};

/// A distribution of factors of a time, all of which are positive: its kind, its parameters, and its quantiles. What a
/// kind does not use is ignored.
struct Distribution {
  DistributionKind kind = DistributionKind::uniform;
  double least = 0.5;
  double most = 100;
  double mean = 1;
  double median = 1;
  double deviation = 0.05;
  double probability = 1;
  double factor = 1;
  double excess = 0.05;
  std::vector<double> values = {};  ///< ascending

  /// Returns the factor below which the share `u` of all factors lies, 0 <= u < 1. Does not fall as `u` grows, but for
  /// a `tail` that makes faster. Never less than `lowest()`.
  double quantile(double u) const;
  /// Returns a bound that no factor is below, and that is positive.
  double lowest() const;

  friend bool operator==(const Distribution&, const Distribution&) = default;
};

/// Returns the number below which the share `p` of a standard normal distribution lies, 0 < p < 1, to about 1e-15 of
/// it. Source: Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37(3),
/// 1988.
double normal_quantile(double p);

}  // namespace orrery
