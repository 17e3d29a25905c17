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

/// Returns `exact` times 1 + noise * (2 draw - 1), draw in [0, 1). It is not less than for a draw of 0. max() if it
/// does not fit.
inline Time noisy(Time exact, double noise, double draw) {
  if (exact == Time::max()) return exact;
  const double factor = 1 + noise * (2 * draw - 1);
  const double ps = static_cast<double>(exact.ps()) * factor;
  return ps < 0x1p63 ? Time::from_ps(static_cast<std::int64_t>(ps)) : Time::max();
}

/// Returns the least that `noisy` gives.
inline Time least_noisy(Time exact, double noise) { return noise == 0 ? exact : noisy(exact, noise, 0); }

}  // namespace orrery::npu
