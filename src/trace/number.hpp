#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::trace {

/// Says whether a value of a trace is a whole number, and if not, why.
enum class NumberForm : std::uint8_t {
  absent,
  whole,
  negative,      ///< a negative whole number, or a negative fraction; the magnitude is given
  fraction,      ///< the whole part is given
  out_of_range,  ///< a number beyond 64 bits, or not a number in the sense of IEEE 754
  no_number,     ///< a text or a list
};

struct Number {
  std::uint64_t magnitude = 0;
  NumberForm form = NumberForm::absent;
};

/// Classifies an integer.
constexpr Number whole_number(std::uint64_t value) { return {value, NumberForm::whole}; }
constexpr Number whole_number(std::int64_t value) {
  if (value >= 0) return {static_cast<std::uint64_t>(value), NumberForm::whole};
  return {std::uint64_t{0} - static_cast<std::uint64_t>(value), NumberForm::negative};
}
/// Classifies a floating-point number.
Number whole_number(double value);
/// Classifies a text: an integer, an integer with a fraction of zeros, or any other decimal number.
Number whole_number(std::string_view text);

}  // namespace orrery::trace
