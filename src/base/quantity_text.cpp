#include "orrery/base/quantity_text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/suggestion.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/units.hpp"

namespace orrery {
namespace {

constexpr Unit wall_time_units[] = {{"s"}, {"min", 60}, {"h", 3600}, {"ms", 1, 1e3}};

/// What a kind of quantity is called in messages.
struct Family {
  std::string_view what;
  std::string_view example;
  std::span<const Unit> units;
};

constexpr Family bandwidths{"a bandwidth", "400 GB/s", units::bandwidth};
constexpr Family times{"a time", "500 ns", units::time};
constexpr Family wall_times{"a wall-clock time", "30 s", wall_time_units};
constexpr Family flops_family{"a compute rate", "989 TFLOPS", units::flops};

/// The number at the start of `text`, and what follows it.
struct Split {
  double number = 0;
  std::string_view digits;
  std::string_view rest;
};

std::string quoted(std::string_view text) { return fmt::format("found '{}'", cited(text)); }

Split split(std::string_view text, const Place& place, std::string_view expected) {
  text = trimmed(text);
  const auto bad = [&](std::string_view why, std::string_view hint = {}) {
    throw Error(ErrorCode::bad_input, place, fmt::format("{}{}", quoted(text), why), expected, hint);
  };
  if (text.empty() || !(std::isdigit(static_cast<unsigned char>(text[0])) != 0 || text[0] == '.'))
    bad(!text.empty() && text[0] == '-' ? ", a negative value" : "");
  if (text.size() > 1 && text[0] == '0' && std::isdigit(static_cast<unsigned char>(text[1])) != 0)
    bad(", a number with a leading zero", "Some programs read it as octal: write it without the zero.");
  Split result;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.number);
  if (error != std::errc() || !std::isfinite(result.number)) bad(", which is out of range or no number");
  result.digits = text.substr(0, static_cast<std::size_t>(end - text.data()));
  result.rest = trimmed(text.substr(result.digits.size()));
  return result;
}

/// Returns the known unit that another spelling means: "Gb/s" of "Gbps" and "Gbit/s"; empty if none is meant.
std::string_view meant_unit(std::string_view written, std::span<const std::string_view> names) {
  std::string text(written);
  const auto replace = [&](std::string_view from, std::string_view to) {
    if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  };
  replace("bits", "bit");
  replace("bit", "b");
  replace("bytes", "B");
  replace("Bytes", "B");
  replace("byte", "B");
  replace("Byte", "B");
  replace("\u00b5", "u");
  replace("FLOP/s", "FLOPS");
  replace("FLOPs", "FLOPS");
  if (text.ends_with("ps") && text.size() > 2) text.replace(text.size() - 2, 2, "/s");
  if (text.ends_with("sec")) text.erase(text.size() - 2);
  for (const std::string_view name : names)
    if (name == text) return name;
  return nearest(written, names);
}

const Unit& unit_of(const Split& split, std::string_view text, const Place& place, const Family& family) {
  const std::string expected = fmt::format("{} with its unit, such as '{}'", family.what, family.example);
  if (split.rest.empty())
    throw Error(ErrorCode::bad_input, place, fmt::format("{}, a number without a unit", quoted(trimmed(text))),
                expected,
                fmt::format("Write the unit: '{} {}'{} if that is meant.", cited(split.digits),
                            family.example.substr(family.example.find(' ') + 1),
                            family.units.data() == bandwidths.units.data()
                                ? fmt::format(", or '{} Gb/s', the unit of network cards,", cited(split.digits))
                                : ""));
  std::vector<std::string_view> names;
  for (const Unit& unit : family.units) {
    if (unit.name == split.rest) return unit;
    names.push_back(unit.name);
  }
  const std::string_view meant = meant_unit(split.rest, names);
  throw Error(ErrorCode::bad_input, place,
              fmt::format("{}, with the unknown unit '{}'", quoted(trimmed(text)), cited(split.rest)), expected,
              meant.empty() ? fmt::format("The units are {}.", list(names))
                            : fmt::format("Did you mean '{} {}'?", cited(split.digits), meant));
}

double parse(std::string_view text, const Place& place, const Family& family) {
  const Split parts = split(text, place, fmt::format("{} such as '{}'", family.what, family.example));
  const Unit& unit = unit_of(parts, text, place, family);
  const double value = parts.number * unit.multiplier / unit.divisor;
  if (!std::isfinite(value))
    throw Error(ErrorCode::bad_input, place, fmt::format("{}, which is out of range", quoted(text)), family.what);
  return value;
}

/// The shortest text that parses to `value` exactly; the first unit, which is the base, always does.
std::string format(double value, const Family& family) {
  std::string best = fmt::format("{} {}", value, family.units[0].name);
  if (value == 0) return best;
  for (const Unit& unit : family.units.subspan(1)) {
    const double number = value * unit.divisor / unit.multiplier;
    if (number * unit.multiplier / unit.divisor != value) continue;
    if (auto text = fmt::format("{} {}", number, unit.name); text.size() < best.size()) best = std::move(text);
  }
  return best;
}

/// In whole numbers where the text is one, so that no size is rounded.
std::optional<std::uint64_t> whole_bytes(const Split& parts, const Unit& unit) {
  std::uint64_t count = 0;
  const char* const last = parts.digits.data() + parts.digits.size();
  const auto [end, error] = std::from_chars(parts.digits.data(), last, count);
  const auto factor = static_cast<std::uint64_t>(unit.multiplier);
  if (error == std::errc() && end == last) {
    if (count > std::numeric_limits<std::uint64_t>::max() / factor) return {};
    return count * factor;
  }
  const double value = parts.number * unit.multiplier;
  if (value != std::floor(value) || value > 9007199254740992.0) return {};
  return static_cast<std::uint64_t>(value);
}

}  // namespace

Bandwidth parse_bandwidth(std::string_view text, const Place& place) {
  return Bandwidth::from_bytes_per_ns(parse(text, place, bandwidths));
}
std::string to_text(Bandwidth bandwidth) { return format(bandwidth.bytes_per_ns(), bandwidths); }

double parse_nanoseconds(std::string_view text, const Place& place) { return parse(text, place, times); }
std::string nanoseconds_to_text(double ns) { return format(ns, times); }

double parse_seconds(std::string_view text, const Place& place) { return parse(text, place, wall_times); }
std::string seconds_to_text(double seconds) { return format(seconds, wall_times); }

double parse_flops(std::string_view text, const Place& place) { return parse(text, place, flops_family); }
std::string flops_to_text(double flops) { return format(flops, flops_family); }

Bytes parse_bytes(std::string_view text, const Place& place, std::string_view example) {
  const Family sizes{"a number of bytes", example, units::bytes};
  const Split parts = split(text, place, fmt::format("{} such as '{}'", sizes.what, sizes.example));
  const auto count = whole_bytes(parts, unit_of(parts, text, place, sizes));
  if (!count) throw Error(ErrorCode::bad_input, place, quoted(text), "a whole number of bytes below 2^64");
  return Bytes(*count);
}

double parse_number(std::string_view text, const Place& place, std::string_view range) {
  const Split parts = split(text, place, fmt::format("a number, {}", range));
  if (!parts.rest.empty())
    throw Error(ErrorCode::bad_input, place, quoted(text), fmt::format("a number without a unit, {}", range));
  return parts.number;
}

std::uint64_t parse_count(std::string_view text, std::uint64_t minimum, std::uint64_t maximum, const Place& place) {
  std::string expected = fmt::format("a whole number, {} or more", minimum);
  if (maximum <= std::numeric_limits<std::uint32_t>::max() / 2)
    expected = fmt::format("a whole number, {} to {}", minimum, maximum);
  const Split parts = split(text, place, expected);
  std::uint64_t count = 0;
  const char* const last = parts.digits.data() + parts.digits.size();
  const auto [end, error] = std::from_chars(parts.digits.data(), last, count);
  if (error == std::errc::result_out_of_range || count > maximum)
    expected = fmt::format("a whole number, {} to {}", minimum, maximum);
  if (error != std::errc() || end != last || !parts.rest.empty() || count < minimum || count > maximum)
    throw Error(ErrorCode::bad_input, place, quoted(text), expected);
  return count;
}

}  // namespace orrery
