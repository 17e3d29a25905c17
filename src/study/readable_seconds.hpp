#pragma once

#include <string>

#include <fmt/format.h>

namespace orrery::study {

/// Returns "90 d", "3.09 h", "21.5 min", "4.8 s": a time of weeks or less for people.
inline std::string readable_seconds(double seconds) {
  if (seconds >= 2 * 86'400) return fmt::format("{:.4g} d", seconds / 86'400);
  if (seconds >= 2 * 3600) return fmt::format("{:.3g} h", seconds / 3600);
  if (seconds >= 120) return fmt::format("{:.3g} min", seconds / 60);
  return fmt::format("{:.4g} s", seconds);
}

}  // namespace orrery::study
