#pragma once

#include <cstdint>
#include <limits>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::collective {

/// Picoseconds as a bare number: the inner loops run over flat arrays of them. Time is used everywhere else.
using Ps = std::int64_t;

/// A duration or the bytes of a collective do not fit: Engine::fits asks before the run, so that nobody else meets it.
class OutOfRange : public Error {
 public:
  OutOfRange() : Error(ErrorCode::internal, "a collective that does not fit the range of time or of bytes") {}
};

/// Throws OutOfRange if the time does not fit.
inline Ps in_range(Time time) {
  if (time == Time::max()) throw OutOfRange();
  return time.ps();
}

/// Throws OutOfRange if the result does not fit.
inline Ps plus(Ps a, Ps b) { return in_range(Time::from_ps(a) + Time::from_ps(b)); }

/// Throws OutOfRange if the result does not fit.
inline Ps times(Ps a, std::uint64_t n) {
  Ps product = 0;
  if (__builtin_mul_overflow(a, n, &product)) throw OutOfRange();
  return product;
}

/// Throws OutOfRange if the result does not fit.
inline Bytes times(Bytes a, std::uint64_t n) {
  const Bytes product = a * n;
  if (product > Bytes::most()) throw OutOfRange();
  return product;
}

/// Sums that are known to fit.
struct UncheckedSums {
  static Ps sum(Ps a, Ps b) { return a + b; }
};
/// Sums that throw OutOfRange if they do not fit.
struct CheckedSums {
  static Ps sum(Ps a, Ps b) { return plus(a, b); }
};

}  // namespace orrery::collective
