#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "orrery/explore/expression.hpp"
#include "quantity.hpp"

namespace orrery::explore {
namespace {

struct Unit {
  std::string_view name;
  double factor;  ///< to bytes, bytes per second, seconds or FLOPs per second
};

constexpr std::array<Unit, 36> units{{
    {"B", 1},        {"kB", 1e3},     {"MB", 1e6},       {"GB", 1e9},       {"TB", 1e12},      {"KiB", 0x1p10},
    {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},   {"B/s", 1},        {"kB/s", 1e3},     {"MB/s", 1e6},
    {"GB/s", 1e9},   {"TB/s", 1e12},  {"KiB/s", 0x1p10}, {"MiB/s", 0x1p20}, {"GiB/s", 0x1p30}, {"TiB/s", 0x1p40},
    {"b/s", 0.125},  {"kb/s", 125},   {"Mb/s", 125e3},   {"Gb/s", 125e6},   {"Tb/s", 125e9},   {"ps", 1e-12},
    {"ns", 1e-9},    {"us", 1e-6},    {"ms", 1e-3},      {"s", 1},          {"FLOPS", 1},      {"kFLOPS", 1e3},
    {"MFLOPS", 1e6}, {"GFLOPS", 1e9}, {"TFLOPS", 1e12},  {"PFLOPS", 1e15},  {"EFLOPS", 1e18},  {"%", 0.01},
}};

}  // namespace

std::optional<double> factor_of(std::string_view unit) {
  for (const Unit& known : units)
    if (known.name == unit) return known.factor;
  return {};
}

std::optional<Value> number_of(std::string_view text, double factor, bool has_unit) {
  const char* const end = text.data() + text.size();
  if (std::int64_t whole = 0; !has_unit || factor >= 1) {
    const auto read = std::from_chars(text.data(), end, whole);
    const double scaled = static_cast<double>(whole) * factor;
    if (read.ec == std::errc() && read.ptr == end && std::abs(scaled) < 0x1p53)
      return Value(has_unit ? static_cast<std::int64_t>(scaled) : whole);
    if (read.ec == std::errc() && read.ptr == end && !has_unit) return Value(whole);
  }
  double real = 0;
  const auto read = std::from_chars(text.data(), end, real);
  if (read.ec != std::errc() || read.ptr != end || !std::isfinite(real * factor)) return {};
  return Value(real * factor);
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

Value value_of(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  const std::size_t sign = text.starts_with('-') ? 1 : 0, length = length_of_number(text.substr(sign));
  std::string_view unit = text.substr(sign + length);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto factor = unit.empty() ? std::optional(1.0) : factor_of(unit);
  const auto number =
      length > 0 && factor ? number_of(text.substr(0, sign + length), *factor, !unit.empty()) : std::optional<Value>();
  return number ? *number : Value(std::string(text));
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

double as_real(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace orrery::explore
