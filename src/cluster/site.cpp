#include <algorithm>
#include <limits>

#include "orrery/cluster/options.hpp"

namespace orrery::cluster {

double Site::cap_at(Nanoseconds time) const {
  constexpr double none = std::numeric_limits<double>::infinity();
  if (caps.empty()) return power_cap > 0 ? power_cap : none;
  const auto after = std::ranges::upper_bound(caps, time % campaign::day, {}, &decltype(caps)::value_type::first);
  const double cap = std::prev(after)->second;
  return cap > 0 ? cap : none;
}

Nanoseconds Site::next_cap(Nanoseconds time) const {
  if (caps.size() < 2) return std::numeric_limits<Nanoseconds>::max();
  const Nanoseconds midnight = time - time % campaign::day;
  const auto after = std::ranges::upper_bound(caps, time % campaign::day, {}, &decltype(caps)::value_type::first);
  return after == caps.end() ? midnight + campaign::day : midnight + after->first;
}

}  // namespace orrery::cluster
