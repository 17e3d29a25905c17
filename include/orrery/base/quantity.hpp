#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "orrery/base/time.hpp"

namespace orrery {

/// A number of bytes. Sums and products that do not fit become the largest number, which is more than most().
class Bytes {
 public:
  constexpr Bytes() = default;
  explicit constexpr Bytes(std::uint64_t count) : count_(count) {}
  /// Returns the most that results can hold: they are written as signed numbers.
  static constexpr Bytes most() { return Bytes(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::uint64_t count() const { return count_; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    std::uint64_t sum = 0;
    return Bytes(__builtin_add_overflow(a.count_, b.count_, &sum) ? ~std::uint64_t{0} : sum);
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) {
    std::uint64_t product = 0;
    return Bytes(__builtin_mul_overflow(a.count_, n, &product) ? ~std::uint64_t{0} : product);
  }
  /// Whole bytes, the remainder is dropped.
  friend constexpr Bytes operator/(Bytes a, std::uint64_t n) { return Bytes(a.count_ / n); }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }

 private:
  std::uint64_t count_ = 0;
};

/// Bytes per nanosecond, which is GB/s of 1e9.
class Bandwidth {
 public:
  constexpr Bandwidth() = default;
  static constexpr Bandwidth from_bytes_per_ns(double value) { return Bandwidth(value); }

  constexpr double bytes_per_ns() const { return bytes_per_ns_; }
  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;

 private:
  explicit constexpr Bandwidth(double value) : bytes_per_ns_(value) {}

  double bytes_per_ns_ = 0;
};

/// How a delay becomes a whole number of ticks.
enum class Rounding : std::uint8_t {
  up_to_ps,    ///< 1 ps, a transfer rounds up (rules `physical`)
  down_to_ns,  ///< whole ns, truncated once as a sum (rules `astra-sim`)
};

/// A sum of times over many links in ps, which may be longer than a run can last.
using SumOfTimes = unsigned __int128;

/// Returns the smallest time between a cause on one logical process and its effect on another.
constexpr Time tick(Rounding rounding) {
  return rounding == Rounding::down_to_ns ? Time::from_ns(1) : Time::from_ps(1);
}

/// Returns a number of nanoseconds, 0 or more, which may be fractional, rounded as `rounding` says; max() if it does
/// not fit.
Time duration_from_ns(double ns, Rounding rounding);

/// Returns `fixed_ns + size / bandwidth`; max() if it does not fit. Bytes and a bandwidth become a time only here.
/// Throws Error (internal) if the bandwidth is not positive.
Time delay(double fixed_ns, Bytes size, Bandwidth bandwidth, Rounding rounding);

/// Returns `size / bandwidth` of the local memory. With `down_to_ns` the quotient is taken in seconds and then turned
/// into ns, as ASTRA-sim does: what should be 15 ns may be 14.99... ns, which is 14 ns. Else as `delay`.
Time local_memory_delay(Bytes size, Bandwidth bandwidth, Rounding rounding);

}  // namespace orrery
