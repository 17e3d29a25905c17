#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "orrery/base/time.hpp"

namespace orrery::serving {

/// Returns what a decimal number with ps, ns, us, ms or s means, to the ps, rounded up; none if it is no such text.
inline std::optional<Time> exact_time(std::string_view text) {
  constexpr std::pair<std::string_view, std::int64_t> units[] = {
      {"ps", 1}, {"ns", 1'000}, {"us", 1'000'000}, {"ms", 1'000'000'000}, {"s", 1'000'000'000'000}};
  std::size_t i = 0;
  unsigned __int128 number = 0, scale = 1;
  bool any = false, has_point = false;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !has_point) {
      has_point = true;
      continue;
    }
    if (text[i] < '0' || text[i] > '9') break;
    any = true;
    if (scale > 1'000'000'000'000 || number > static_cast<unsigned __int128>(1) << 70U) return {};
    number = number * 10 + static_cast<unsigned>(text[i] - '0');
    if (has_point) scale *= 10;
  }
  while (i < text.size() && text[i] == ' ') ++i;
  for (const auto& [name, ps] : units) {
    if (!any || text.substr(i) != name) continue;
    const unsigned __int128 value = (number * static_cast<std::uint64_t>(ps) + scale - 1) / scale;
    if (value >= static_cast<std::uint64_t>(Time::max().ps())) return {};
    return Time::from_ps(static_cast<std::int64_t>(value));
  }
  return {};
}

}  // namespace orrery::serving
