#pragma once

#include <cmath>
#include <cstdint>

#include "orrery/base/time.hpp"

namespace orrery::npu {

/// Returns how long that which takes `exact` at speed 1 takes at another speed, to the nearest ps. It does not grow
/// with the speed. max() if it does not fit.
inline Time at_speed(Time exact, double speed) {
  if (speed == 1) return exact;
  const double ps = static_cast<double>(exact.ps()) / speed;
  return ps < 0x1p63 ? Time::from_ps(std::llround(ps)) : Time::max();
}

/// Returns the factor 1 + noise * (2 draw - 1), draw in [0, 1). It is not less than for a draw of 0.
inline double noise_factor(double noise, double draw) { return 1 + noise * (2 * draw - 1); }

/// Returns `exact` times a positive factor, in whole ps. It does not fall as the factor grows. max() if it does not
/// fit.
inline Time times_factor(Time exact, double factor) {
  if (factor == 1 || exact == Time::max()) return exact;
  const double ps = static_cast<double>(exact.ps()) * factor;
  return ps < 0x1p63 ? Time::from_ps(static_cast<std::int64_t>(ps)) : Time::max();
}

}  // namespace orrery::npu
