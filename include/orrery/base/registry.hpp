#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery {

/// Names one entry of a registry, as a configuration does. Cheap to copy and to compare.
///
/// A registry is a table of the variants of one thing, such as the shapes of a topology. `Entry` has a member `name`
/// and a static function `registry()` that returns the table. The first entry is the default.
template <class Entry>
class Registered {
 public:
  /// Names the first entry.
  Registered() : entry_(Entry::registry().front()) {}
  /// Names the entry with this name. Throws Error (internal) if there is none.
  explicit Registered(std::string_view name) : entry_(entry_of(name)) {
    ensure(entry_ != nullptr, "a name that is in no registry");
  }

  /// Returns the entry with this name; none if there is none.
  static std::optional<Registered> find(std::string_view name) {
    const Entry* const entry = entry_of(name);
    if (entry == nullptr) return {};
    return Registered(entry);
  }
  /// Returns all entries in the order of the registry.
  static std::vector<Registered> all() {
    std::vector<Registered> entries;
    for (const Entry* const entry : Entry::registry()) entries.push_back(Registered(entry));
    return entries;
  }

  std::string_view name() const { return entry_->name; }
  const Entry& operator*() const { return *entry_; }
  const Entry* operator->() const { return entry_; }

  friend bool operator==(Registered, Registered) = default;

 private:
  explicit Registered(const Entry* entry) : entry_(entry) {}

  static const Entry* entry_of(std::string_view name) {
    const auto entries = Entry::registry();
    const auto found = std::ranges::find(entries, name, [](const Entry* entry) { return entry->name; });
    return found == entries.end() ? nullptr : *found;
  }

  const Entry* entry_;
};

/// Returns the names of the entries that `holds` is true of, for messages: "Ring, Mesh or Switch".
template <class Entry, class Predicate>
std::string names_where(Predicate holds) {
  std::vector<std::string_view> names;
  for (const Entry* const entry : Entry::registry())
    if (holds(*entry)) names.push_back(entry->name);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace orrery
