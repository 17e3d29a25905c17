#pragma once

#include <cstdint>

namespace orrery {

/// A number by which many are divided: a product takes the place of each division, which takes longer.
class Divisor {
 public:
  /// `value` must not be 0.
  explicit constexpr Divisor(std::uint32_t value) : value_(value), inverse_(~std::uint64_t{0} / value + 1) {}

  constexpr std::uint32_t value() const { return value_; }
  // With d > 1, inverse = (2^64 + e) / d for some e, 0 <= e < d. So number * inverse / 2^64 exceeds number / d by less
  // than 2^-32, which is too little to reach the next whole number. With d = 1 the inverse does not fit.
  constexpr std::uint32_t quotient(std::uint32_t number) const {
    if (value_ == 1) return number;
    return static_cast<std::uint32_t>(static_cast<unsigned __int128>(inverse_) * number >> 64U);
  }
  constexpr std::uint32_t remainder(std::uint32_t number) const { return number - quotient(number) * value_; }

 private:
  std::uint32_t value_;
  std::uint64_t inverse_;
};

}  // namespace orrery
