#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/faults.hpp"

namespace orrery::config {

/// Where a value was read: a file, a --set or another option.
struct Origin {
  std::string name;              ///< for messages; empty for an option, whose name stands in the place of the key
  std::filesystem::path folder;  ///< relative paths start here
};

/// One value of a YAML or JSON text with its place, before it has a meaning.
struct Value {
  enum class Kind : std::uint8_t { null, scalar, sequence, mapping };
  struct Entry;
  using KeyIndex = std::unordered_map<std::string, std::size_t>;  ///< index of the keys of a mapping: their positions

  Kind kind = Kind::null;
  std::string text;     ///< text of a scalar
  bool quoted = false;  ///< a scalar that can only be a text
  bool faulty = false;  ///< fault of the file that it names, which has been noted
  std::optional<std::uint64_t> line;
  std::shared_ptr<const Origin> origin;
  std::vector<Value> items;
  std::vector<Entry> entries;
  std::vector<std::string> notes;  ///< notes on the keys of a mapping, such as one that is given again

  /// Adds an entry of a mapping, whose keys stand in `index`. A key that is given again is a fault, but with an equal
  /// value is only noted.
  void add(Entry entry, KeyIndex& index, Faults& faults);
  /// Says whether both values are written alike, wherever they stand.
  bool is_equal(const Value& other) const;
  /// Returns what is to be said of the keys of this mapping and all below it.
  std::vector<std::string> all_notes() const;
  /// Returns the value of a key of a mapping; null if there is none. Cost O(entries).
  const Value* find(std::string_view key) const;
  /// Returns where the value stands, as that of `key`.
  Place place(std::string_view key) const;
  /// Returns what the value is, for messages: "the text 'x'", "a list of 3", ...
  std::string description() const;
};

struct Value::Entry {
  std::string key;
  std::optional<std::uint64_t> line;
  Value value;
};

/// Returns the value that an option of the command line gives.
Value option_value(std::string text);

inline constexpr int deepest_nesting = 64;

/// Parses a YAML or a JSON document. Duplicate keys become faults unless their values are equal; throws Error
/// (bad_input) with the line if the text is not well-formed, or nested more than `deepest_nesting` deep.
Value parse_yaml(std::string_view text, const std::shared_ptr<const Origin>& origin, Faults& faults);
Value parse_json(std::string_view text, const std::shared_ptr<const Origin>& origin, Faults& faults);

/// Applies "key.path=value" as if it stood in `root`; the value is YAML, a number in the path is the position in a
/// list. Missing mappings are made (the strict reading of the result finds unknown ones). Throws Error: usage for
/// what is no key=value or a path of more than `deepest_nesting` names, bad_input for a position that is not there.
void apply_override(Value& root, const std::string& setting, Faults& faults);

}  // namespace orrery::config
