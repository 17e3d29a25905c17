#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace orrery {

inline constexpr std::int64_t ps_per_us = 1'000'000;

/// A point in simulated time, or a duration: a signed whole number of picoseconds. Times before max(), about 106 days,
/// can be simulated; what does not fit becomes max(), which is "never", and nothing that happens may have that time.
class Time {
 public:
  constexpr Time() = default;

  static constexpr Time from_ps(std::int64_t ps) { return Time(ps); }
  static constexpr Time from_ns(std::int64_t ns) { return Time(ns) * 1000; }
  static constexpr Time zero() { return Time(0); }
  /// Returns the time that is later than everything that happens: "never".
  static constexpr Time max() { return Time(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t ps() const { return ps_; }
  constexpr double seconds() const { return static_cast<double>(ps_) * 1e-12; }

  friend constexpr auto operator<=>(Time, Time) = default;
  /// Saturates at max(), so that "never" plus a delay is still never.
  friend constexpr Time operator+(Time a, Time b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a.ps_, b.ps_, &sum) ? max() : Time(sum);
  }
  friend constexpr Time operator-(Time a, Time b) { return Time(a.ps_ - b.ps_); }
  /// Of a duration, n >= 0. Saturates at max().
  friend constexpr Time operator*(Time a, std::int64_t n) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(a.ps_, n, &product) ? max() : Time(product);
  }
  constexpr Time& operator+=(Time other) { return *this = *this + other; }
  constexpr Time& operator-=(Time other) { return *this = *this - other; }

 private:
  explicit constexpr Time(std::int64_t ps) : ps_(ps) {}

  std::int64_t ps_ = 0;
};

}  // namespace orrery
