#include "types.hpp"

#include <fmt/format.h>

#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "reading.hpp"

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

constexpr std::string_view counts_expected = "a list of whole numbers";
constexpr std::string_view npus_expected = "NPUs such as 7 or \"3,17,64-71\"";
constexpr auto write_number = [](const Limits&, double value) { return fmt::to_string(value); };

std::string seconds_range(const Limits& limits) { return limits.minimum > 0 ? "more than 0 s" : "0 s or more"; }
std::string size_range(const Limits& limits) { return fmt::format("{} B or more", limits.minimum); }

}  // namespace

constinit const ValueKind<bool> boolean_kind = kind_of<bool>(
    [](const Limits&) { return quantity(boolean_name, "true or false", "-", "true or false"); },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) { return as_bool(value, key); },
    [](const Limits&, bool value) { return std::string(value ? "true" : "false"); });

constinit const ValueKind<std::uint32_t> count_kind = kind_of<std::uint32_t>(
    [](const Limits& limits) {
      const std::string range = limits.maximum == std::numeric_limits<std::uint32_t>::max()
                                    ? fmt::format("{} or more", limits.minimum)
                                    : fmt::format("{} to {}", limits.minimum, limits.maximum);
      return quantity("whole number", fmt::format("a whole number, {}", range), "-", range);
    },
    [](const Limits& limits, const Value& value, const std::string& key, const Reading&) {
      return as_count(value, key, static_cast<std::uint32_t>(limits.minimum),
                      static_cast<std::uint32_t>(limits.maximum));
    },
    [](const Limits& limits, std::uint32_t value) {
      return value < limits.minimum ? std::nullopt : std::optional(fmt::to_string(value));
    });

constinit const ValueKind<std::uint64_t> large_count_kind = kind_of<std::uint64_t>(
    [](const Limits& limits) {
      const std::string range = fmt::format("{} or more", limits.minimum);
      return quantity("whole number", fmt::format("a whole number, {}", range), "-", range);
    },
    [](const Limits& limits, const Value& value, const std::string& key, const Reading&) {
      return as_large_count(value, key, limits.minimum);
    },
    [](const Limits& limits, std::uint64_t value) {
      return value < limits.minimum ? std::nullopt : std::optional(fmt::to_string(value));
    });

constinit const ValueKind<std::vector<std::uint64_t>> large_counts_kind = kind_of<std::vector<std::uint64_t>>(
    [](const Limits&) { return quantity("list of whole numbers", counts_expected, "-", "0 or more each"); },
    [](const Limits&, const Value& value, const std::string& key, const Reading& reading) {
      std::vector<std::uint64_t> numbers;
      for (const Value& item : as_list(value, key, counts_expected))
        reading.faults.attempt([&] { numbers.push_back(as_large_count(item, key, 0)); });
      return numbers;
    },
    [](const Limits&, const std::vector<std::uint64_t>& numbers) {
      return numbers.empty() ? std::nullopt : std::optional(fmt::format("[{}]", fmt::join(numbers, ", ")));
    });

constinit const ValueKind<double> number_kind = kind_of<double>(
    [](const Limits& limits) { return quantity("number", fmt::format("a number, {}", limits.text), "-", limits.text); },
    [](const Limits& limits, const Value& value, const std::string& key, const Reading&) {
      return as_number(value, key, limits.text);
    },
    write_number);

constinit const ValueKind<double> share_kind = kind_of<double>(
    [](const Limits&) { return quantity("number", "a number, 0 or more and below 1", "-", "0 or more and below 1"); },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) { return as_share(value, key); },
    write_number);

constinit const ValueKind<double> efficiency_kind = kind_of<double>(
    [](const Limits&) { return quantity("number", "a number from 1e-6 to 1", "-", "1e-6 to 1"); },
    [](const Limits&, const Value& value, const std::string& path, const Reading&) {
      const double number = as_number(value, path);
      if (number >= 1e-6 && number <= 1) return number;
      throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", number), "a number from 1e-6 to 1");
    },
    write_number);

constinit const ValueKind<double> factor_kind =
    kind_of<double>([](const Limits&) { return quantity("number", "a factor from 1e-6 to 1e6", "-", "1e-6 to 1e6"); },
                    [](const Limits&, const Value& value, const std::string& key, const Reading&) {
                      const double factor = as_number(value, key);
                      require_factor(factor, value.place(key));
                      return factor;
                    },
                    write_number);

void require_factor(double factor, const Place& place) {
  if (!(factor >= 1 / most_factor && factor <= most_factor))
    throw Error(ErrorCode::bad_input, place, fmt::format("found {}", factor), "a factor from 1e-6 to 1e6");
}

constinit const ValueKind<Bandwidth> bandwidth_kind = kind_of<Bandwidth>(
    [](const Limits&) { return quantity("bandwidth", "a bandwidth with its unit", "B/s", "1 B/s or more"); },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) { return as_bandwidth(value, key); },
    [](const Limits&, Bandwidth value) {
      return value.bytes_per_ns() > 0 ? std::optional(to_text(value)) : std::nullopt;
    });

constinit const ValueKind<double> nanoseconds_kind =
    kind_of<double>([](const Limits&) { return quantity("time", "a time with its unit", "s", "0 to 1000 s"); },
                    [](const Limits&, const Value& value, const std::string& key, const Reading&) {
                      return as_nanoseconds(value, key);
                    },
                    [](const Limits&, double ns) { return nanoseconds_to_text(ns); });

constinit const ValueKind<Time> duration_kind =
    kind_of<Time>([](const Limits&) { return quantity("time", "a time with its unit", "s", "0 to 1000 s"); },
                  [](const Limits&, const Value& value, const std::string& key, const Reading&) {
                    return duration_from_ns(as_nanoseconds(value, key), Rounding::up_to_ps);
                  },
                  [](const Limits&, Time time) { return fmt::format("{} ps", time.ps()); });

constinit const ValueKind<double> seconds_kind = kind_of<double>(
    [](const Limits& limits) {
      return quantity("wall-clock time", "a wall-clock time with its unit", "s", seconds_range(limits));
    },
    [](const Limits& limits, const Value& value, const std::string& key, const Reading&) {
      const double seconds = as_seconds(value, key);
      if (limits.minimum > 0 && !(seconds > 0)) refuse_value(value, key, seconds_range(limits));
      return seconds;
    },
    [](const Limits&, double value) { return seconds_to_text(value); });

constinit const ValueKind<double> compute_rate_kind = kind_of<double>(
    [](const Limits&) { return quantity("compute rate", "a compute rate with its unit", "FLOPS", "more than 0"); },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) { return as_flops(value, key); },
    [](const Limits&, double flops) { return flops > 0 ? std::optional(flops_to_text(flops)) : std::nullopt; });

constinit const ValueKind<Bytes> size_kind = kind_of<Bytes>(
    [](const Limits& limits) { return quantity("size", "a size with its unit", "B", size_range(limits)); },
    [](const Limits& limits, const Value& value, const std::string& key, const Reading&) {
      const Bytes size = parse_bytes(as_text(value, key, fmt::format("a size such as '{}'", limits.text)),
                                     value.place(key), limits.text);
      if (size < Bytes(limits.minimum)) refuse_value(value, key, size_range(limits), limits.hint);
      return size;
    },
    [](const Limits& limits, Bytes value) {
      return value < Bytes(limits.minimum) ? std::nullopt : std::optional(fmt::format("{} B", value.count()));
    });

constinit const ValueKind<std::string> text_kind =
    kind_of<std::string>([](const Limits& limits) { return quantity("text", limits.text, "-", "any"); },
                         [](const Limits& limits, const Value& value, const std::string& key, const Reading&) {
                           return as_text(value, key, limits.text);
                         },
                         [](const Limits&, const std::string& text) { return in_quotes(text); });

constinit const ValueKind<std::filesystem::path> file_kind = kind_of<std::filesystem::path>(
    [](const Limits&) { return quantity("file", "the name of a file", "-", "any"); },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) { return as_path(value, key); },
    [](const Limits&, const std::filesystem::path& path) { return in_quotes(normal_path(path)); },
    [](const std::filesystem::path& a, const std::filesystem::path& b) { return normal_path(a) == normal_path(b); });

constinit const ValueKind<std::vector<NpuRange>> npu_list_kind = kind_of<std::vector<NpuRange>>(
    [](const Limits&) { return quantity("list of NPUs", npus_expected, "-", "ascending, each NPU once"); },
    [](const Limits&, const Value& value, const std::string& key, const Reading& reading) {
      const std::string text = as_text(value, key, npus_expected);
      const std::uint32_t num_npus = reading.num_npus();
      return num_npus == 0 ? std::vector<NpuRange>() : parse_npu_list(text, num_npus, value.place(key));
    },
    [](const Limits&, const std::vector<NpuRange>& ranges) {
      return ranges.empty() ? std::nullopt : std::optional(fmt::format("\"{}\"", to_text(ranges)));
    });

TypeInfo word_info(std::vector<WordInfo> words) {
  std::vector<std::string_view> texts;
  for (const WordInfo& word : words) texts.push_back(word.text);
  const std::string all = list(texts);
  return {"word", all, "-", all, std::move(words)};
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
