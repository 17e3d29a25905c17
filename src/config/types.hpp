#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/config/npu_list.hpp"
#include "section.hpp"
#include "words.hpp"

namespace orrery::config {

struct Reading;

/// What is said of the values of a key, in tables and messages.
struct TypeInfo {
  std::string name;                  ///< name in tables: "bandwidth"
  std::string expected;              ///< text in messages: "a bandwidth with its unit"
  std::string unit;                  ///< the base of the units, such as "B/s"; "-": the values have none
  std::string range;                 ///< which values are allowed: "1 B/s or more"
  std::vector<WordInfo> words = {};  ///< the only values, if there are only these
  bool has_plain_unit = false;       ///< the unit is meant, not written: a number of GB/s
};

/// The name of the type of `true` and `false`.
inline constexpr std::string_view boolean_name = "true or false";

/// What a type adds to its kind.
struct Limits {
  std::uint64_t minimum = 0;
  std::uint64_t maximum = std::numeric_limits<std::uint64_t>::max();
  std::string_view text = {};  ///< a range, an example or a unit, as the kind takes it
  std::string_view hint = {};  ///< advice in the message about a value that is too small
};

/// How values of one kind are read, written and compared, without their type in C++: `to`, `value`, `a` and `b` are
/// addresses of values of the type that the ValueKind names.
struct AnyValueKind {
  TypeInfo (*info)(const Limits& limits);
  /// Throws Error (bad_input) at the value's place; `key` is its path.
  void (*read)(const Limits& limits, const Value& value, const std::string& key, const Reading& reading, void* to);
  /// Returns the text in YAML's flow style that is read as this value; none if no text is, which stands for "absent".
  std::optional<std::string> (*text)(const Limits& limits, const void* value);
  bool (*same)(const void* a, const void* b);
};
template <class T>
struct ValueKind : AnyValueKind {};

/// Says that values are the same if they are equal.
struct Equal {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return a == b;
  }
};

/// Returns a kind that consists of lambdas without captures: info(limits), read(limits, value, key, reading),
/// text(limits, value) and same(a, b).
template <class T, class Info, class Read, class AsText, class Same = Equal>
consteval ValueKind<T> kind_of(Info info, Read, AsText, Same = {}) {
  return {{info,
           [](const Limits& limits, const Value& value, const std::string& key, const Reading& reading, void* to) {
             *static_cast<T*>(to) = Read{}(limits, value, key, reading);
           },
           [](const Limits& limits, const void* value) -> std::optional<std::string> {
             return AsText{}(limits, *static_cast<const T*>(value));
           },
           [](const void* a, const void* b) { return Same{}(*static_cast<const T*>(a), *static_cast<const T*>(b)); }}};
}

/// A kind of values with its limits. Tables of keys name it: `count(1, 8)`.
template <class T>
class Type {
 public:
  constexpr Type(const ValueKind<T>& kind, Limits limits = {}) : kind_(&kind), limits_(limits) {}

  constexpr const AnyValueKind& kind() const { return *kind_; }
  constexpr const Limits& limits() const { return limits_; }
  TypeInfo info() const { return kind_->info(limits_); }
  T read(const Value& value, const std::string& key, const Reading& reading) const {
    T result{};
    kind_->read(limits_, value, key, reading, &result);
    return result;
  }
  void read_to(const Value& value, const std::string& key, const Reading& reading, T& to) const {
    kind_->read(limits_, value, key, reading, &to);
  }
  std::optional<std::string> text(const T& value) const { return kind_->text(limits_, &value); }

 private:
  const AnyValueKind* kind_;
  Limits limits_;
};

extern const ValueKind<bool> boolean_kind;
extern const ValueKind<std::uint32_t> count_kind;
extern const ValueKind<std::uint64_t> large_count_kind;
extern const ValueKind<std::vector<std::uint64_t>> large_counts_kind;
extern const ValueKind<double> number_kind, share_kind, efficiency_kind, factor_kind, nanoseconds_kind, seconds_kind,
    compute_rate_kind;
extern const ValueKind<Bandwidth> bandwidth_kind;
extern const ValueKind<Time> duration_kind;
extern const ValueKind<Bytes> size_kind;
extern const ValueKind<std::string> text_kind;
extern const ValueKind<std::filesystem::path> file_kind;
extern const ValueKind<std::vector<NpuRange>> npu_list_kind;

/// Returns the type of `true` and `false`.
constexpr Type<bool> boolean() { return boolean_kind; }
/// Returns the type of whole numbers from `minimum` to `maximum`.
constexpr Type<std::uint32_t> count(std::uint32_t minimum = 1,
                                    std::uint32_t maximum = std::numeric_limits<std::uint32_t>::max()) {
  return {count_kind, {.minimum = minimum, .maximum = maximum}};
}
/// Returns the type of whole numbers from `minimum` to 2^53.
constexpr Type<std::uint64_t> large_count(std::uint64_t minimum = 0) {
  return {large_count_kind, {.minimum = minimum}};
}
/// Returns the type of lists of whole numbers from 0 to 2^53.
constexpr Type<std::vector<std::uint64_t>> large_counts() { return large_counts_kind; }
/// Returns the type of numbers without a unit. `range` is a text: where it is enforced, a check does it.
constexpr Type<double> number(std::string_view range) { return {number_kind, {.text = range}}; }
/// Returns the type of numbers from 0 to below 1.
constexpr Type<double> share() { return share_kind; }
/// Returns the type of shares that something reaches of its most, from 1e-6 to 1.
constexpr Type<double> efficiency() { return efficiency_kind; }
/// Returns the type of factors, 1e-6 to 1e6.
constexpr Type<double> factor() { return factor_kind; }
/// Throws Error (bad_input) for what is no factor of this range.
void require_factor(double factor, const Place& place);
/// Returns the type of bandwidths of 1 B/s or more.
constexpr Type<Bandwidth> bandwidth() { return bandwidth_kind; }
/// Returns the type of simulated times from 0 to 1000 s, kept in nanoseconds that may be fractional.
constexpr Type<double> nanoseconds() { return nanoseconds_kind; }
/// Returns the type of simulated times from 0 to 1000 s, kept in whole picoseconds, rounded up.
constexpr Type<Time> duration() { return duration_kind; }
/// Returns the type of wall-clock times, kept in seconds: more than 0 s if `is_positive`, else 0 s or more.
constexpr Type<double> seconds(bool is_positive) { return {seconds_kind, {.minimum = is_positive ? 1U : 0U}}; }
/// Returns the type of compute rates of more than 0 FLOPS.
constexpr Type<double> compute_rate() { return compute_rate_kind; }
/// Returns the type of sizes of `minimum` bytes or more. `example` is what messages propose; `hint` is what they say
/// about a smaller size.
constexpr Type<Bytes> size(std::uint64_t minimum = 0, std::string_view example = "64 MiB", std::string_view hint = {}) {
  return {size_kind, {.minimum = minimum, .text = example, .hint = hint}};
}
/// Returns the type of texts.
constexpr Type<std::string> any_text(std::string_view expected) { return {text_kind, {.text = expected}}; }
/// Returns the type of names of files, which are equal if they name the same file from the current folder.
constexpr Type<std::filesystem::path> file() { return file_kind; }
/// Returns the type of lists of NPUs, such as "3,17,64-71". If the number of NPUs is not known, it reads an empty list.
constexpr Type<std::vector<NpuRange>> npu_list() { return npu_list_kind; }

/// Returns what is said of values that are written as one of these words.
TypeInfo word_info(std::vector<WordInfo> words);

/// The type of the values that a function such as precisions() has words for.
template <auto words>
using ValueOf = decltype(std::remove_cvref_t<decltype(words())>::value_type::value);

/// The kind of values that are written as one of the words that a function returns.
template <auto words>
inline constexpr ValueKind<ValueOf<words>> word_kind = kind_of<ValueOf<words>>(
    [](const Limits&) { return word_info(info_of(words())); },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) {
      return as_word(value, key, words());
    },
    [](const Limits&, const ValueOf<words>& value) { return std::string(text_of(words(), value)); });
template <auto words>
constexpr Type<ValueOf<words>> word() {
  return word_kind<words>;
}
/// The kind of values of the type that a function returns, or none.
template <auto type>
inline constexpr auto optional_kind = kind_of<std::optional<decltype(type().read({}, {}, std::declval<Reading>()))>>(
    [](const Limits&) { return type().info(); },
    [](const Limits&, const Value& value, const std::string& key, const Reading& reading) {
      return std::optional(type().read(value, key, reading));
    },
    [](const Limits&, const auto& value) { return value ? type().text(*value) : std::nullopt; });
template <auto type>
constexpr auto optional_of() {
  return Type(optional_kind<type>);
}
/// Returns the words of such a function without their values.
template <auto words>
std::vector<WordInfo> words_info() {
  return info_of(words());
}

/// Returns a file's absolute name without dots, which is the same for all names of one file; nothing of no name.
std::string normal_path(const std::filesystem::path& path);
/// Returns a text in double quotes, which YAML reads back as it is.
std::string in_quotes(std::string_view text);

}  // namespace orrery::config
