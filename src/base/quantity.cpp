#include "orrery/base/quantity.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/base/error.hpp"

namespace orrery {
namespace {

using Wide = unsigned __int128;

constexpr double end_ns = 9223372036854774.0;  // a double just below the longest Time

Time whole_ns(double ns) {
  ensure(ns >= 0, "a delay that is negative or no number");
  return ns <= end_ns ? Time::from_ns(static_cast<std::int64_t>(ns)) : Time::max();
}

/// ceil(size * 1e12 / bytes per second). In whole numbers, so that 3 B over 0.3 B/ns is 10 ns and not 10.001; but for
/// rates that are no whole number of bytes per second of 64 bits.
Time transfer(Bytes size, Bandwidth bandwidth) {
  const double rate = bandwidth.bytes_per_ns() * 1e9;
  if (rate < 1 || rate > 9.2e18) {
    const double ps = std::ceil(static_cast<double>(size.count()) / bandwidth.bytes_per_ns() * 1000);
    return ps <= end_ns * 1000 ? Time::from_ps(static_cast<std::int64_t>(ps)) : Time::max();
  }
  const auto bytes_per_second = static_cast<Wide>(std::llround(rate));
  const Wide ps = (static_cast<Wide>(size.count()) * 1'000'000'000'000U + bytes_per_second - 1) / bytes_per_second;
  return Time::from_ps(static_cast<std::int64_t>(std::min(ps, static_cast<Wide>(Time::max().ps()))));
}

}  // namespace

Time duration_from_ns(double ns, Rounding rounding) {
  if (rounding == Rounding::down_to_ns) return whole_ns(ns);
  ensure(ns >= 0, "a duration that is negative or no number");
  return ns <= end_ns ? Time::from_ps(std::llround(ns * 1000)) : Time::max();
}

Time delay(double fixed_ns, Bytes size, Bandwidth bandwidth, Rounding rounding) {
  ensure(bandwidth.bytes_per_ns() > 0, "a transfer over a bandwidth that is not positive");
  if (rounding == Rounding::down_to_ns)
    return whole_ns(fixed_ns + static_cast<double>(size.count()) / bandwidth.bytes_per_ns());
  return duration_from_ns(fixed_ns, rounding) + transfer(size, bandwidth);
}

Time local_memory_delay(Bytes size, Bandwidth bandwidth, Rounding rounding) {
  if (rounding != Rounding::down_to_ns) return delay(0, size, bandwidth, rounding);
  ensure(bandwidth.bytes_per_ns() > 0, "a local memory without bandwidth");
  return whole_ns(static_cast<double>(size.count()) / (bandwidth.bytes_per_ns() * 1e9) * 1e9);
}

}  // namespace orrery
