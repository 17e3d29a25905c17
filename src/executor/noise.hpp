#pragma once

#include <cstdint>

#include "orrery/base/time.hpp"

namespace orrery::executor {

/// `exact` times 1 + noise * (2 draw - 1), draw in [0, 1); not less than for a draw of 0. max() if it does not fit.
inline Time noisy(Time exact, double noise, double draw) {
  const double factor = 1 + noise * (2 * draw - 1);
  const double ps = static_cast<double>(exact.ps()) * factor;
  return ps < 0x1p63 ? Time::from_ps(static_cast<std::int64_t>(ps)) : Time::max();
}

/// The least that `noisy` gives.
inline Time least_noisy(Time exact, double noise) { return noise == 0 ? exact : noisy(exact, noise, 0); }

}  // namespace orrery::executor
