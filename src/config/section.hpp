#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "value.hpp"

namespace orrery::config {

// The meaning of a single value. Each throws Error (bad_input) at the value's place; `key` is its path.
std::string as_text(const Value& value, const std::string& key, std::string_view expected);
bool as_bool(const Value& value, const std::string& key);
std::uint32_t as_count(const Value& value, const std::string& key, std::uint32_t minimum = 1,
                       std::uint32_t maximum = std::numeric_limits<std::uint32_t>::max());
double as_number(const Value& value, const std::string& key, std::string_view range = "0 or more");
/// 0 or more and below 1.
double as_share(const Value& value, const std::string& key);
Bandwidth as_bandwidth(const Value& value, const std::string& key);  ///< at least 1 B/s
double as_nanoseconds(const Value& value, const std::string& key);   ///< 0 to 1000 s
double as_seconds(const Value& value, const std::string& key);
double as_flops(const Value& value, const std::string& key);  ///< positive
Bytes as_bytes(const Value& value, const std::string& key);
std::filesystem::path as_path(const Value& value, const std::string& key);  ///< from the origin's folder
[[noreturn]] void refuse_word(const Value& value, const std::string& key, const std::vector<std::string_view>& known);
/// What one of these words means.
template <class T>
T as_word(const Value& value, const std::string& key, const std::vector<std::pair<std::string_view, T>>& words) {
  std::vector<std::string_view> known;
  for (const auto& [word, meaning] : words) {
    if (value.kind == Value::Kind::scalar && value.text == word) return meaning;
    known.push_back(word);
  }
  refuse_word(value, key, known);
}
const std::vector<Value>& as_list(const Value& value, const std::string& key, std::string_view expected);

/// `folder / path` without the dots, or `path` if it is absolute.
std::filesystem::path joined(const std::filesystem::path& folder, const std::filesystem::path& path);

/// One mapping, read strictly: what is asked for is known, what is not asked for is a fault. A mapping that is absent
/// reads as an empty one. Faults are noted; the default then stands in.
class Section {
 public:
  /// `mapping` may be null. `parent` gives the place where a missing mapping would stand.
  Section(const Value* mapping, std::string path, const Value& parent, Faults& faults);

  /// Null if absent or empty.
  const Value* find(std::string_view key);
  /// A missing key is a fault.
  const Value* need(std::string_view key, std::string_view expected);
  Section section(std::string_view key);
  /// parse(value, key path) if the key is there.
  template <class T, class Parse>
  T get(std::string_view key, T fallback, Parse parse) {
    return read(find(key), key, std::move(fallback), parse);
  }
  /// The same for a key that must be there.
  template <class T, class Parse>
  T require(std::string_view key, std::string_view expected, T fallback, Parse parse) {
    return read(need(key, expected), key, std::move(fallback), parse);
  }
  template <class T>
  T choose(std::string_view key, T fallback, const std::vector<std::pair<std::string_view, T>>& choices);

  /// Entries that nobody asked for.
  std::vector<const Value::Entry*> unknown() const;
  /// Every unknown entry is a fault, with the nearest known key.
  void refuse_unknown();

  bool present() const { return mapping_ != nullptr; }
  std::string path(std::string_view key) const;
  Place place(std::string_view key) const;
  Faults& faults() { return faults_; }
  const std::vector<std::string_view>& known() const { return known_; }

 private:
  template <class T, class Parse>
  T read(const Value* value, std::string_view key, T fallback, Parse parse) {
    if (value != nullptr) faults_.attempt([&] { fallback = parse(*value, path(key)); });
    return fallback;
  }

  const Value* mapping_ = nullptr;
  bool broken_ = false;  ///< no mapping but something else, which is a fault already
  std::string path_;
  const Value& parent_;
  Faults& faults_;
  std::vector<std::string_view> known_;  ///< literals, or texts that outlive the section
};

template <class T>
T Section::choose(std::string_view key, T fallback, const std::vector<std::pair<std::string_view, T>>& choices) {
  return get(key, fallback, [&](const Value& value, const std::string& path) { return as_word(value, path, choices); });
}

}  // namespace orrery::config
