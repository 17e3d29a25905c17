#include "orrery/base/quantity.hpp"

#include <cmath>

#include "orrery/base/error.hpp"

namespace orrery {
namespace {

constexpr double max_ns = 9.0e15;  // just under what Time holds

Time whole_ns(double ns) {
  check(ns >= 0 && ns < max_ns, "a delay does not fit the range of simulated time");
  return Time::from_ns(static_cast<std::int64_t>(ns));
}

}  // namespace

Time duration_from_ns(double ns, Rounding rounding) {
  if (rounding == Rounding::down_to_ns) return whole_ns(ns);
  check(ns >= 0 && ns < max_ns, "a duration does not fit the range of simulated time");
  return Time::from_ps(std::llround(ns * 1000));
}

Time delay(double fixed_ns, Bytes size, Bandwidth bandwidth, Rounding rounding) {
  check(bandwidth.bytes_per_ns() > 0, "a transfer over a bandwidth that is not positive");
  if (rounding == Rounding::down_to_ns)
    return whole_ns(fixed_ns + static_cast<double>(size.count()) / bandwidth.bytes_per_ns());
  // In whole numbers, so that 3 B over 0.3 B/ns is 10 ns and not 10.001: ceil(size * 1e12 / bytes per second).
  using Wide = unsigned __int128;
  const auto bytes_per_second = static_cast<Wide>(std::llround(bandwidth.bytes_per_ns() * 1e9));
  check(bytes_per_second > 0, "a bandwidth below one byte per second");
  const Wide ps = (static_cast<Wide>(size.count()) * 1'000'000'000'000U + bytes_per_second - 1) / bytes_per_second;
  check(ps < static_cast<Wide>(max_ns) * 1000U, "a delay does not fit the range of simulated time");
  return duration_from_ns(fixed_ns, rounding) + Time::from_ps(static_cast<std::int64_t>(ps));
}

}  // namespace orrery
