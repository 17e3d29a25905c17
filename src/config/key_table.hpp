#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "key.hpp"
#include "section.hpp"

namespace orrery::config {

/// Keys under one heading of the tables.
struct KeySection {
  std::string title;  ///< "system.network", "system.json", ...
  std::vector<const KeyInfo*> keys;
};

/// The keys of a target, in the order in which they are read, written and listed.
class AnyKeys {
 public:
  /// `title`: the heading of the tables. `root`: the path of the mapping that holds a target; empty: all of the file.
  AnyKeys(Text title, std::string_view root) : title_(title.string()), root_(root) {}

  /// Adds a key. Throws Error (internal) if there is one of this path, or if it is not below the root.
  void add(std::unique_ptr<const AnyKey> key);

  /// Returns the key with this path; null if there is none.
  const AnyKey* find(std::string_view path) const {
    const auto found = by_path_.find(path);
    return found == by_path_.end() ? nullptr : found->second;
  }
  auto begin() const { return keys_.begin(); }
  auto end() const { return keys_.end(); }
  const std::string& root() const { return root_; }
  KeySection section() const;

 private:
  std::string title_, root_;
  std::vector<std::unique_ptr<const AnyKey>> keys_;
  std::map<std::string_view, const AnyKey*> by_path_;
};

/// The keys that become a `Target`.
template <class Target>
class Keys : public AnyKeys {
 public:
  explicit Keys(Text title, std::string_view root = {}) : AnyKeys(title, root) {}
  /// Makes the keys of a table, which outlives them.
  template <std::derived_from<Row<Target>> AnyRow, std::size_t count>
  Keys(Text title, const AnyRow (&rows)[count], std::string_view root = {}) : AnyKeys(title, root) {
    add_rows(rows);
  }

  template <std::derived_from<Row<Target>> AnyRow, std::size_t count>
  void add_rows(const AnyRow (&rows)[count]) {
    for (const Row<Target>& row : rows) add(std::make_unique<Key<Target>>(row));
  }
};

/// The mappings within one mapping, opened as they are asked for.
class Sections {
 public:
  explicit Sections(Section top) { open_.emplace(std::string(), std::move(top)); }

  /// Returns the mapping at `path` below the first one: "" or "local-memory" or "custom.nodes".
  Section& at(std::string_view path);
  /// Makes a fault of every entry that no key knows.
  void refuse_unknown();

 private:
  std::map<std::string, Section, std::less<>> open_;
};

// What follows takes the address of a target of the keys. The functions below check its type.
void read_any_keys(const AnyKeys& keys, Sections& sections, void* target, Reading& reading);
bool read_any_item(const AnyKeys& keys, const Value& item, const std::string& path, void* target, Reading& reading);
void write_any_keys(const AnyKeys& keys, const void* target, Writer& writer);

/// Reads the keys of a target. Faults are noted; what is faulty keeps its default. Cost O(keys * entries of a mapping).
template <class Target>
void read_keys(const Keys<Target>& keys, Sections& sections, std::type_identity_t<Target>& target, Reading& reading) {
  read_any_keys(keys, sections, &target, reading);
}

/// Puts the keys of a target into `writer`.
template <class Target>
void write_keys(const Keys<Target>& keys, const std::type_identity_t<Target>& target, Writer& writer) {
  write_any_keys(keys, &target, writer);
}

/// Reads a list of mappings: calls take(item, place, is_faultless) for each. Unknown keys are faults.
template <class Target, class Take>
void read_items(const Keys<Target>& keys, const std::vector<Value>& items, const std::string& path, Reading& reading,
                Take take) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string at = path + "." + std::to_string(i);
    Target target{};
    const bool is_faultless = read_any_item(keys, items[i], at, &target, reading);
    take(std::move(target), items[i].place(at), is_faultless);
  }
}

/// Returns a target as a mapping in YAML's flow style.
template <class Target>
std::string flow_text(const Keys<Target>& keys, const std::type_identity_t<Target>& target) {
  Writer writer(keys.root());
  write_keys(keys, target, writer);
  return writer.flow();
}

/// Says whether all keys have the same values in two targets.
template <class Target>
bool are_same(const Keys<Target>& keys, const std::type_identity_t<Target>& a, const std::type_identity_t<Target>& b) {
  for (const auto& key : keys)
    if (!key->same(&a, &b)) return false;
  return true;
}

}  // namespace orrery::config
