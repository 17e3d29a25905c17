#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "orrery/base/time.hpp"

namespace orrery::serving {

/// Returns a duration that was summed up in us, rounded once to ps; 1 ps at least.
inline Time us_to_time(double us) {
  const double ps = std::nearbyint(us * static_cast<double>(ps_per_us));
  if (!(ps < static_cast<double>(Time::max().ps()))) return Time::max();
  return Time::from_ps(std::max<std::int64_t>(static_cast<std::int64_t>(ps), 1));
}

}  // namespace orrery::serving
