#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::campaign {

/// A time of weeks, in whole nanoseconds: 292 years at the most.
using Nanoseconds = std::int64_t;

inline constexpr Nanoseconds second = 1'000'000'000;
inline constexpr Nanoseconds day = 86'400 * second;
/// No time of a campaign is longer: 100 years.
inline constexpr Nanoseconds longest = 36'525 * day;

/// Returns seconds, 0 or more, in nanoseconds, rounded up; at most `longest`. What is within 1e-12 of a whole number of
/// nanoseconds counts as that number.
Nanoseconds nanoseconds(double seconds);
inline double seconds(Nanoseconds time) { return static_cast<double>(time) * 1e-9; }

/// How a duration is spread.
enum class SpreadKind : std::uint8_t { fixed, exponential, uniform, weibull, lognormal, pareto, values, mixture };

/// A distribution of durations in seconds, or of other positive numbers, by its quantiles.
struct Spread {
  SpreadKind kind = SpreadKind::fixed;
  double mean = 0;                   ///< mean of all kinds but uniform, pareto, values and mixture
  double least = 0, most = 0;        ///< bounds of uniform and pareto
  double shape = 1;                  ///< shape of weibull and pareto
  double median = 0;                 ///< median of lognormal
  std::vector<double> values = {};   ///< values of kind values; means of the exponential parts of a mixture
  std::vector<double> weights = {};  ///< shares of the parts of a mixture

  static Spread fixed(double value) { return {.mean = value}; }

  /// Returns the number that is not exceeded with the probability u, 0 < u < 1. A mixture draws the part with u and the
  /// duration with `second_u`.
  double quantile(double u, double second_u = 0.5) const;
  /// Returns the mean.
  double average() const;
  bool is_zero() const { return kind == SpreadKind::fixed && mean == 0; }

  friend bool operator==(const Spread&, const Spread&) = default;
};

}  // namespace orrery::campaign
