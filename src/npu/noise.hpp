#pragma once

#include <cmath>
#include <cstdint>

#include "orrery/base/time.hpp"

namespace orrery::npu {

/// What takes `exact` at speed 1, at another one, to the nearest ps; not more at a higher one. max() if it does not
/// fit.
inline Time at_speed(Time exact, double speed) {
  if (speed == 1) return exact;
  const double ps = static_cast<double>(exact.ps()) / speed;
  return ps < 0x1p63 ? Time::from_ps(std::llround(ps)) : Time::max();
}

/// `exact` times 1 + noise * (2 draw - 1), draw in [0, 1); not less than for a draw of 0. max() if it does not fit.
inline Time noisy(Time exact, double noise, double draw) {
  if (exact == Time::max()) return exact;
  const double factor = 1 + noise * (2 * draw - 1);
  const double ps = static_cast<double>(exact.ps()) * factor;
  return ps < 0x1p63 ? Time::from_ps(static_cast<std::int64_t>(ps)) : Time::max();
}

/// The least that `noisy` gives.
inline Time least_noisy(Time exact, double noise) { return noise == 0 ? exact : noisy(exact, noise, 0); }

}  // namespace orrery::npu
