#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "orrery/base/units.hpp"
#include "orrery/explore/expression.hpp"
#include "quantity.hpp"

namespace orrery::explore {
namespace {

/// What a unit is in SI units.
struct InSi {
  double factor = 1;
  std::string_view unit;
};

std::optional<InSi> in_si(std::string_view name) {
  if (name == "%") return InSi{0.01, "1"};
  for (const UnitFamily& family : unit_families)
    for (const Unit& unit : family.units)
      if (unit.name == name) return InSi{family.to_si(unit), family.si};
  return {};
}

/// Returns what follows the number that a text begins with.
std::string_view unit_in(std::string_view text) {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  std::string_view unit = text.substr(sign + length_of_number(text.substr(sign)));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  return unit;
}

}  // namespace

std::optional<double> factor_of(std::string_view unit) {
  const auto known = in_si(unit);
  return known ? std::optional(known->factor) : std::nullopt;
}

std::optional<Value> number_of(std::string_view text, double factor, bool has_unit) {
  const char* const end = text.data() + text.size();
  if (std::int64_t whole = 0; !has_unit || factor >= 1) {
    const auto read = std::from_chars(text.data(), end, whole);
    const bool is_whole = read.ec == std::errc() && read.ptr == end;
    const double scaled = static_cast<double>(whole) * factor;
    if (is_whole && !has_unit) return whole;
    if (is_whole && std::abs(scaled) < 0x1p53) return static_cast<std::int64_t>(scaled);
  }
  double real = 0;
  const auto read = std::from_chars(text.data(), end, real);
  if (read.ec != std::errc() || read.ptr != end || !std::isfinite(real * factor)) return {};
  return real * factor;
}

std::size_t length_of_number(std::string_view text) {
  const auto is_digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  std::size_t end = 0;
  while (is_digit(end) || (end < text.size() && text[end] == '.')) ++end;
  if (end == 0 || end == text.size() || (text[end] != 'e' && text[end] != 'E')) return end;
  std::size_t exponent = end + 1;
  if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
  if (!is_digit(exponent)) return end;
  while (is_digit(exponent)) ++exponent;
  return exponent;
}

std::string_view si_unit_of(std::string_view text) {
  const auto known = in_si(unit_in(text));
  return known ? known->unit : "1";
}

Value value_of(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  const std::size_t sign = text.starts_with('-') ? 1 : 0, length = length_of_number(text.substr(sign));
  const std::string_view unit = unit_in(text);
  const auto factor = unit.empty() ? std::optional(1.0) : factor_of(unit);
  if (length > 0 && factor)
    if (const auto number = number_of(text.substr(0, sign + length), *factor, !unit.empty())) return *number;
  return std::string(text);
}

std::string to_text(const Value& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>)
          return held;
        else
          return fmt::format("{}", held);
      },
      value);
}

bool is_unit(std::string_view unit) { return factor_of(unit).has_value(); }

std::string to_text_in(std::string_view unit, const Value& value) {
  const double real = as_real(value);
  return std::isnan(real) ? to_text(value) : fmt::format("{:.15g} {}", real / factor_of(unit).value_or(1), unit);
}

double as_real(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace orrery::explore
