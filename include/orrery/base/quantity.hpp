#pragma once

#include <compare>
#include <cstdint>

#include "orrery/base/time.hpp"

namespace orrery {

/// A number of bytes.
class Bytes {
 public:
  constexpr Bytes() = default;
  explicit constexpr Bytes(std::uint64_t count) : count_(count) {}

  constexpr std::uint64_t count() const { return count_; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) { return Bytes(a.count_ * n); }
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

/// The smallest time between a cause on one logical process and its effect on another.
constexpr Time tick(Rounding rounding) {
  return rounding == Rounding::down_to_ns ? Time::from_ns(1) : Time::from_ps(1);
}

/// A number of nanoseconds that may be fractional, rounded as `rounding` says.
/// Throws Error (internal) if it does not fit Time.
Time duration_from_ns(double ns, Rounding rounding);

/// `fixed_ns + size / bandwidth`: the one place where bytes and a bandwidth become a time.
/// Throws Error (internal) if the bandwidth is not positive or the result does not fit Time.
Time delay(double fixed_ns, Bytes size, Bandwidth bandwidth, Rounding rounding);

}  // namespace orrery
