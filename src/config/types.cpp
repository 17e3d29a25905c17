#include "types.hpp"

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/config/units.hpp"

namespace orrery::config {
namespace {

constexpr std::uint64_t largest_count = std::uint64_t{1} << 53U;
constexpr double most_factor = 1e6;

std::uint64_t as_large_count(const Value& value, const std::string& key, std::uint64_t minimum) {
  if (value.kind != Value::Kind::scalar || value.quoted)
    throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()),
                fmt::format("a whole number, {} or more", minimum));
  return parse_count(value.text, minimum, largest_count, value.place(key));
}

[[noreturn]] void refuse_value(const Value& value, const std::string& key, std::string_view expected,
                               std::string_view hint = {}) {
  throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()), expected, hint);
}

/// Returns what is said of a quantity that is written with its unit.
TypeInfo quantity(std::string_view name, std::string_view expected, std::string_view unit, std::string_view range) {
  return {std::string(name), std::string(expected), std::string(unit), std::string(range)};
}

}  // namespace

Type<bool> boolean() {
  return {{std::string(boolean_name), "true or false", "-", "true or false"},
          [](const Value& value, const std::string& key, const Reading&) { return as_bool(value, key); },
          [](const bool& value) -> std::optional<std::string> { return value ? "true" : "false"; }};
}

Type<std::uint32_t> count(std::uint32_t minimum, std::uint32_t maximum) {
  const std::string range = maximum == std::numeric_limits<std::uint32_t>::max()
                                ? fmt::format("{} or more", minimum)
                                : fmt::format("{} to {}", minimum, maximum);
  return {{"whole number", fmt::format("a whole number, {}", range), "-", range},
          [=](const Value& value, const std::string& key, const Reading&) {
            return as_count(value, key, minimum, maximum);
          },
          [=](const std::uint32_t& value) {
            return value < minimum ? std::nullopt : std::optional(fmt::to_string(value));
          }};
}

Type<std::uint64_t> large_count(std::uint64_t minimum) {
  const std::string range = fmt::format("{} or more", minimum);
  return {
      {"whole number", fmt::format("a whole number, {}", range), "-", range},
      [=](const Value& value, const std::string& key, const Reading&) { return as_large_count(value, key, minimum); },
      [=](const std::uint64_t& value) {
        return value < minimum ? std::nullopt : std::optional(fmt::to_string(value));
      }};
}

Type<std::vector<std::uint64_t>> large_counts() {
  constexpr std::string_view expected = "a list of whole numbers";
  return {{"list of whole numbers", std::string(expected), "-", "0 or more each"},
          [=](const Value& value, const std::string& key, const Reading& reading) {
            std::vector<std::uint64_t> numbers;
            for (const Value& item : as_list(value, key, expected))
              reading.faults.attempt([&] { numbers.push_back(as_large_count(item, key, 0)); });
            return numbers;
          },
          [](const std::vector<std::uint64_t>& numbers) {
            return numbers.empty() ? std::nullopt : std::optional(fmt::format("[{}]", fmt::join(numbers, ", ")));
          }};
}

Type<double> number(std::string_view range) {
  return {{"number", fmt::format("a number, {}", range), "-", std::string(range)},
          [range = std::string(range)](const Value& value, const std::string& key, const Reading&) {
            return as_number(value, key, range);
          },
          [](const double& value) -> std::optional<std::string> { return fmt::to_string(value); }};
}

Type<double> share() {
  constexpr std::string_view range = "0 or more and below 1";
  return {quantity("number", "a number, 0 or more and below 1", "-", range),
          [](const Value& value, const std::string& key, const Reading&) { return as_share(value, key); },
          [](const double& value) -> std::optional<std::string> { return fmt::to_string(value); }};
}

Type<double> efficiency() {
  constexpr std::string_view range = "1e-6 to 1";
  return {quantity("number", "a number from 1e-6 to 1", "-", range),
          [](const Value& value, const std::string& path, const Reading&) {
            const double number = as_number(value, path);
            if (number >= 1e-6 && number <= 1) return number;
            throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", number),
                        "a number from 1e-6 to 1", "1 reaches the whole peak.");
          },
          [](const double& value) -> std::optional<std::string> { return fmt::to_string(value); }};
}

Type<double> factor() {
  return {quantity("number", "a factor from 1e-6 to 1e6", "-", "1e-6 to 1e6"),
          [](const Value& value, const std::string& key, const Reading&) {
            const double factor = as_number(value, key);
            require_factor(factor, value.place(key));
            return factor;
          },
          [](const double& value) -> std::optional<std::string> { return fmt::to_string(value); }};
}

void require_factor(double factor, const Place& place) {
  if (!(factor >= 1 / most_factor && factor <= most_factor))
    throw Error(ErrorCode::bad_input, place, fmt::format("found {}", factor), "a factor from 1e-6 to 1e6");
}

Type<Bandwidth> bandwidth() {
  return {
      quantity("bandwidth", "a bandwidth with its unit", "B/s", "1 B/s or more"),
      [](const Value& value, const std::string& key, const Reading&) { return as_bandwidth(value, key); },
      [](const Bandwidth& value) { return value.bytes_per_ns() > 0 ? std::optional(to_text(value)) : std::nullopt; }};
}

Type<double> nanoseconds() {
  return {quantity("time", "a time with its unit", "s", "0 to 1000 s"),
          [](const Value& value, const std::string& key, const Reading&) { return as_nanoseconds(value, key); },
          [](const double& ns) -> std::optional<std::string> { return nanoseconds_to_text(ns); }};
}

Type<Time> duration() {
  return {quantity("time", "a time with its unit", "s", "0 to 1000 s"),
          [](const Value& value, const std::string& key, const Reading&) {
            return duration_from_ns(as_nanoseconds(value, key), Rounding::up_to_ps);
          },
          [](const Time& time) -> std::optional<std::string> { return fmt::format("{} ps", time.ps()); }};
}

Type<double> seconds(bool is_positive) {
  const std::string range = is_positive ? "more than 0 s" : "0 s or more";
  return {quantity("wall-clock time", "a wall-clock time with its unit", "s", range),
          [=](const Value& value, const std::string& key, const Reading&) {
            const double seconds = as_seconds(value, key);
            if (is_positive && !(seconds > 0)) refuse_value(value, key, range);
            return seconds;
          },
          [](const double& value) -> std::optional<std::string> { return seconds_to_text(value); }};
}

Type<double> compute_rate() {
  return {quantity("compute rate", "a compute rate with its unit", "FLOPS", "more than 0"),
          [](const Value& value, const std::string& key, const Reading&) { return as_flops(value, key); },
          [](const double& flops) { return flops > 0 ? std::optional(flops_to_text(flops)) : std::nullopt; }};
}

Type<Bytes> size(std::uint64_t minimum, std::string_view example, std::string_view hint) {
  const std::string range = fmt::format("{} B or more", minimum);
  return {quantity("size", "a size with its unit", "B", range),
          [=](const Value& value, const std::string& key, const Reading&) {
            const Bytes size = parse_bytes(as_text(value, key, fmt::format("a size such as '{}'", example)),
                                           value.place(key), example);
            if (size < Bytes(minimum)) refuse_value(value, key, range, hint);
            return size;
          },
          [=](const Bytes& value) {
            return value < Bytes(minimum) ? std::nullopt : std::optional(fmt::format("{} B", value.count()));
          }};
}

Type<std::string> any_text(std::string_view expected) {
  return {{"text", std::string(expected), "-", "any"},
          [expected = std::string(expected)](const Value& value, const std::string& key, const Reading&) {
            return as_text(value, key, expected);
          },
          [](const std::string& text) -> std::optional<std::string> { return in_quotes(text); }};
}

Type<std::filesystem::path> file() {
  return {
      {"file", "the name of a file", "-", "any"},
      [](const Value& value, const std::string& key, const Reading&) { return as_path(value, key); },
      [](const std::filesystem::path& path) -> std::optional<std::string> { return in_quotes(normal_path(path)); },
      [](const std::filesystem::path& a, const std::filesystem::path& b) { return normal_path(a) == normal_path(b); }};
}

Type<std::vector<NpuRange>> npu_list() {
  constexpr std::string_view expected = "NPUs such as 7 or \"3,17,64-71\"";
  return {{"list of NPUs", std::string(expected), "-", "ascending, each NPU once"},
          [=](const Value& value, const std::string& key, const Reading& reading) {
            const std::string text = as_text(value, key, expected);
            const std::uint32_t num_npus = reading.num_npus();
            return num_npus == 0 ? std::vector<NpuRange>() : parse_npu_list(text, num_npus, value.place(key));
          },
          [](const std::vector<NpuRange>& ranges) {
            return ranges.empty() ? std::nullopt : std::optional(fmt::format("\"{}\"", to_text(ranges)));
          }};
}

std::string normal_path(const std::filesystem::path& path) {
  return path.empty() ? "" : std::filesystem::absolute(path).lexically_normal().string();
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + "\"";
}

}  // namespace orrery::config
