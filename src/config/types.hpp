#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/config/npu_list.hpp"
#include "reading.hpp"
#include "section.hpp"
#include "words.hpp"

namespace orrery::config {

/// What is said of the values of a key, in tables and messages.
struct TypeInfo {
  std::string name;                  ///< in tables: "bandwidth"
  std::string expected;              ///< in messages: "a bandwidth with its unit"
  std::string unit;                  ///< the base of the units, such as "B/s"; "-": the values have none
  std::string range;                 ///< which values are allowed: "1 B/s or more"
  std::vector<WordInfo> words = {};  ///< the only values, if there are only these
  bool has_plain_unit = false;       ///< the unit is meant, not written: a number of GB/s
};

/// The name of the type of `true` and `false`.
inline constexpr std::string_view boolean_name = "true or false";

/// How the values of one type are read, written and compared.
template <class T>
struct Type {
  TypeInfo info;
  /// Returns what `value` means. Throws Error (bad_input) at the value's place; `key` is its path.
  std::function<T(const Value& value, const std::string& key, const Reading& reading)> read;
  /// Returns the text in YAML's flow style that is read as this value; none if no text is, which stands for "absent".
  std::function<std::optional<std::string>(const T& value)> text;
  std::function<bool(const T& a, const T& b)> same = std::equal_to<T>();
};

/// Returns the type of `true` and `false`.
Type<bool> boolean();
/// Returns the type of whole numbers from `minimum` to `maximum`.
Type<std::uint32_t> count(std::uint32_t minimum = 1, std::uint32_t maximum = std::numeric_limits<std::uint32_t>::max());
/// Returns the type of whole numbers from `minimum` to 2^53.
Type<std::uint64_t> large_count(std::uint64_t minimum = 0);
/// Returns the type of lists of whole numbers from 0 to 2^53.
Type<std::vector<std::uint64_t>> large_counts();
/// Returns the type of numbers without a unit. `range` is a text: where it is enforced, a check does it.
Type<double> number(std::string_view range);
/// Returns the type of numbers from 0 to below 1.
Type<double> share();
/// Returns the type of shares that something reaches of its most, from 1e-6 to 1.
Type<double> efficiency();
/// Returns the type of factors, 1e-6 to 1e6.
Type<double> factor();
/// Throws Error (bad_input) for what is no factor of this range.
void require_factor(double factor, const Place& place);
/// Returns the type of bandwidths of 1 B/s or more.
Type<Bandwidth> bandwidth();
/// Returns the type of simulated times from 0 to 1000 s, kept in nanoseconds that may be fractional.
Type<double> nanoseconds();
/// Returns the type of simulated times from 0 to 1000 s, kept in whole picoseconds, rounded up.
Type<Time> duration();
/// Returns the type of wall-clock times, kept in seconds: more than 0 s if `is_positive`, else 0 s or more.
Type<double> seconds(bool is_positive);
/// Returns the type of compute rates of more than 0 FLOPS.
Type<double> compute_rate();
/// Returns the type of sizes of `minimum` bytes or more. `example` is what messages propose; `hint` is what they say
/// about a smaller size.
Type<Bytes> size(std::uint64_t minimum = 0, std::string_view example = "64 MiB", std::string_view hint = {});
/// Returns the type of texts.
Type<std::string> any_text(std::string_view expected);
/// Returns the type of names of files, which are equal if they name the same file from the current folder.
Type<std::filesystem::path> file();
/// Returns the type of lists of NPUs, such as "3,17,64-71". If the number of NPUs is not known, it reads an empty list.
Type<std::vector<NpuRange>> npu_list();

/// Returns the type of values that are written as one of these words.
template <class T>
Type<T> word(const Words<T>& words) {
  Type<T> type;
  type.info = {"word", {}, "-", {}, info_of(words)};
  std::vector<std::string_view> texts;
  for (const auto& entry : words) texts.push_back(entry.text);
  type.info.expected = type.info.range = list(texts);
  type.read = [&words](const Value& value, const std::string& key, const Reading&) {
    return as_word(value, key, words);
  };
  type.text = [&words](const T& value) -> std::optional<std::string> { return std::string(text_of(words, value)); };
  return type;
}

/// Returns a file's absolute name without dots, which is the same for all names of one file; nothing of no name.
std::string normal_path(const std::filesystem::path& path);
/// Returns a text in double quotes, which YAML reads back as it is.
std::string in_quotes(std::string_view text);

}  // namespace orrery::config
