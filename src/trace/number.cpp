#include "number.hpp"

#include <charconv>
#include <cmath>
#include <system_error>

namespace orrery::trace {

Number whole_number(double value) {
  constexpr double limit = 18446744073709551616.0;  // 2^64
  if (!(std::abs(value) < limit)) return {0, NumberForm::out_of_range};
  const auto magnitude = static_cast<std::uint64_t>(std::abs(value));
  if (value < 0) return {magnitude, NumberForm::negative};
  return {magnitude, std::trunc(value) == value ? NumberForm::whole : NumberForm::fraction};
}

Number whole_number(std::string_view text) {
  const char* const end = text.data() + text.size();
  const bool is_negative = text.starts_with('-');
  std::uint64_t magnitude = 0;
  const auto [rest, fault] = std::from_chars(text.data() + (is_negative ? 1 : 0), end, magnitude);
  const std::string_view fraction(rest, end);
  const bool is_integer =
      fraction.empty() || (fraction.starts_with('.') && fraction.find_first_not_of('0', 1) == std::string_view::npos);
  if (fault == std::errc() && is_integer)
    return {magnitude, is_negative && magnitude > 0 ? NumberForm::negative : NumberForm::whole};
  double value = 0;
  const auto [stop, no_number] = std::from_chars(text.data(), end, value);
  if (stop != end || no_number == std::errc::invalid_argument || std::isnan(value)) return {0, NumberForm::no_number};
  return no_number == std::errc() ? whole_number(value) : Number{0, NumberForm::out_of_range};
}

}  // namespace orrery::trace
