#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/suggestion.hpp"
#include "value.hpp"
#include "words.hpp"

namespace orrery::config {

// Each of these functions returns what a single value means, or throws Error (bad_input) at the value's place. `key` is
// the path of the value.

/// Returns a text that is not empty.
std::string as_text(const Value& value, const std::string& key, std::string_view expected);
bool as_bool(const Value& value, const std::string& key);
/// Returns a whole number, minimum..maximum.
std::uint32_t as_count(const Value& value, const std::string& key, std::uint32_t minimum = 1,
                       std::uint32_t maximum = std::numeric_limits<std::uint32_t>::max());
/// Returns a number without a unit, 0 or more. `range` is what messages say that it may be.
double as_number(const Value& value, const std::string& key, std::string_view range = "0 or more");
/// Returns a number from 0 to below 1.
double as_share(const Value& value, const std::string& key);
/// Returns a bandwidth of 1 B/s or more.
Bandwidth as_bandwidth(const Value& value, const std::string& key);
/// Returns a simulated time in nanoseconds, 0 to 1000 s.
double as_nanoseconds(const Value& value, const std::string& key);
/// Returns a wall-clock time in seconds.
double as_seconds(const Value& value, const std::string& key);
/// Returns a compute rate in FLOPs per second, more than 0.
double as_flops(const Value& value, const std::string& key);
/// Returns the name of a file; a relative one starts in the folder of the file that holds the value.
std::filesystem::path as_path(const Value& value, const std::string& key);
/// Returns the items of a list that is not empty.
const std::vector<Value>& as_list(const Value& value, const std::string& key, std::string_view expected);
/// Throws the error about a value that is none of the known words.
[[noreturn]] void refuse_word(const Value& value, const std::string& key, const std::vector<std::string_view>& known);
/// Returns the value of one of these words.
template <class T>
T as_word(const Value& value, const std::string& key, const Words<T>& words) {
  std::vector<std::string_view> known;
  for (const auto& word : words) {
    if (value.kind == Value::Kind::scalar && value.text == word.text) return word.value;
    known.push_back(word.text);
  }
  refuse_word(value, key, known);
}

/// Reads one mapping strictly: a key that is asked for is known, and an entry that is not known is a fault. A mapping
/// that is absent reads as an empty one.
class Section {
 public:
  /// `mapping` may be null. `parent` gives the place where a missing mapping would be. A value that is no mapping is a
  /// fault; then nothing more is said about its keys.
  Section(const Value* mapping, std::string path, const Value& parent, Faults& faults);

  /// Returns the value of a key; null if it is absent or empty. `key` must outlive the section.
  const Value* find(std::string_view key);
  /// The same for a key that must be there: a missing one is a fault. `hint` says what to do, unless an unknown key is
  /// near enough to be meant; it may be empty.
  const Value* need(std::string_view key, std::string_view expected, std::string_view hint = {});
  /// Returns the mapping that is the value of a key.
  Section section(std::string_view key);
  /// Notes a key that would be known with the setting `where`: the fault about it says so.
  void note_elsewhere(std::string_view key, std::string_view where) { elsewhere_.emplace_back(key, where); }

  /// Returns the entries that are not known.
  std::vector<const Value::Entry*> unknown() const;
  /// Makes a fault of every entry that is not known, with the nearest known key. Cost O(entries * known keys).
  void refuse_unknown();

  bool present() const { return mapping_ != nullptr; }
  std::string path(std::string_view key) const;
  Place place(std::string_view key) const;
  const std::vector<std::string_view>& known() const { return known_; }

 private:
  const Value* mapping_ = nullptr;
  bool is_broken_ = false;  ///< it is no mapping, or is within a value that is none: a fault already
  std::string path_;
  const Value& parent_;
  Faults& faults_;
  std::vector<std::string_view> known_;
  std::vector<std::pair<std::string_view, std::string_view>> elsewhere_;
};

}  // namespace orrery::config
