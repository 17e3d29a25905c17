#pragma once

#include <cstdint>
#include <limits>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::collective {

/// Picoseconds as a bare number: the inner loops run over flat arrays of them. Time is used everywhere else.
using Ps = std::int64_t;

/// Throws Error (internal) if the result does not fit.
inline Ps plus(Ps a, Ps b) {
  Ps sum = 0;
  check(!__builtin_add_overflow(a, b, &sum), "the duration of a collective does not fit the range of simulated time");
  return sum;
}

/// Throws Error (internal) if the result does not fit.
inline Ps times(Ps a, std::uint64_t n) {
  Ps product = 0;
  check(!__builtin_mul_overflow(a, n, &product),
        "the duration of a collective does not fit the range of simulated time");
  return product;
}

/// Throws Error (internal) if the result does not fit.
inline Bytes times(Bytes a, std::uint64_t n) {
  std::uint64_t product = 0;
  check(!__builtin_mul_overflow(a.count(), n, &product), "the bytes of a collective do not fit 64 bits");
  return Bytes(product);
}

}  // namespace orrery::collective
