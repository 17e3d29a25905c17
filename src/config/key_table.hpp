#pragma once

#include <fmt/format.h>

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "key.hpp"
#include "orrery/base/error.hpp"
#include "section.hpp"

namespace orrery::config {

/// Keys under one heading of the tables.
struct KeySection {
  std::string title;  ///< "system.network", "system.json", ...
  std::vector<const KeyInfo*> keys;
};

/// The keys of a `Target`, in the order in which they are read, written and listed.
template <class Target>
class Keys {
 public:
  /// `title`: the heading of the tables. `root`: the path of the mapping that holds a Target; empty: all of the file.
  explicit Keys(Text title, std::string_view root = {}) : title_(title.string()), root_(root) {}

  Keys(Keys&&) = default;
  Keys& operator=(Keys&&) = default;

  /// Adds a key whose value is one member: access(target) returns a reference to it, for a const target too.
  template <class T, class Access>
  Key<Target>& add(const About& about, const Type<T>& type, Access access) {
    return add_member(describe(about, type.info), type, access);
  }
  /// Adds any other key.
  Key<Target>& add(const About& about, TypeInfo type, Handling<Target> handling) {
    return insert(describe(about, std::move(type)), std::move(handling));
  }
  /// Adds a key that is described at run time, such as the parameter of a shape.
  Key<Target>& add(KeyInfo info, Handling<Target> handling) { return insert(std::move(info), std::move(handling)); }
  /// The same for a key or flag of ASTRA-sim.
  template <class T, class Access>
  Key<Target>& add_astra_sim(const AboutAstraSim& about, const Type<T>& type, Access access) {
    return add_member(describe(about, type.info), type, access);
  }
  Key<Target>& add_astra_sim(const AboutAstraSim& about, TypeInfo type, Handling<Target> handling) {
    return insert(describe(about, std::move(type)), std::move(handling));
  }

  /// Returns the key with this path; null if there is none.
  const Key<Target>* find(std::string_view path) const {
    const auto found = by_path_.find(path);
    return found == by_path_.end() ? nullptr : found->second;
  }
  auto begin() const { return keys_.begin(); }
  auto end() const { return keys_.end(); }
  const std::string& root() const { return root_; }
  KeySection section() const {
    KeySection section{title_, {}};
    for (const auto& key : keys_) section.keys.push_back(&key.info());
    return section;
  }

 private:
  template <class T, class Access>
  Key<Target>& add_member(KeyInfo info, const Type<T>& type, Access access);
  Key<Target>& insert(KeyInfo info, Handling<Target> handling) {
    ensure(root_.empty() || info.path.starts_with(root_ + "."), "the path of a key begins with that of its mapping");
    auto& key = keys_.emplace_back(std::move(info), std::move(handling));
    ensure(by_path_.emplace(key.info().path, &key).second, "each key has one descriptor");
    return key;
  }

  std::string title_, root_;
  std::deque<Key<Target>> keys_;
  std::map<std::string, const Key<Target>*, std::less<>> by_path_;
};

template <class Target>
template <class T, class Access>
Key<Target>& Keys<Target>::add_member(KeyInfo info, const Type<T>& type, Access access) {
  const std::string path = info.path;
  if (info.otherwise.kind() == Default::Kind::built_in) {
    const Target initial{};
    const auto text = type.text(access(initial));
    ensure(text.has_value(), "a built-in default can be written");
    info.default_text = *text;
  }
  return insert(std::move(info), {[=](const Value& value, const std::string& at, Target& target, Reading& reading) {
                                    access(target) = type.read(value, at, reading);
                                  },
                                  [=](const Target& target, Writer& writer) {
                                    if (auto text = type.text(access(target))) writer.put(path, std::move(*text));
                                  },
                                  [=](const Target& a, const Target& b) { return type.same(access(a), access(b)); }});
}

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

/// Reads the keys of a target. Faults are noted; what is faulty keeps its default. Cost O(keys * entries of a mapping).
template <class Target>
void read_keys(const Keys<Target>& keys, Sections& sections, Target& target, Reading& reading) {
  std::map<std::string_view, Place> given;
  for (const Key<Target>& key : keys) {
    const std::string_view below =
        std::string_view(key.info().path).substr(keys.root().empty() ? 0 : keys.root().size() + 1);
    const auto dot = below.rfind('.');
    Section& section = sections.at(dot == std::string_view::npos ? std::string_view() : below.substr(0, dot));
    const std::string_view name = dot == std::string_view::npos ? below : below.substr(dot + 1);
    if (!key.applies(target)) {
      if (key.is_accepted_otherwise())
        section.find(name);
      else
        section.note_elsewhere(name, key.info().only_with);
      continue;
    }
    key.set_default(target, reading);
    const auto reason = key.need(target, reading, section.present());
    const Value* const value =
        reason ? section.need(name, key.info().expected(*reason), key.info().hint_if_missing()) : section.find(name);
    if (value == nullptr) continue;
    const std::string path = section.path(name);
    const Place place = value->place(path);
    given.emplace(key.info().path, place);
    reading.note_place(key.info(), place);
    reading.faults.attempt([&] {
      if (given.contains(key.excluded()) || reading.configuration.places.contains(key.excluded()))
        throw Error(ErrorCode::bad_input, place, fmt::format("{} is given too", key.excluded()), "one of them");
      key.read(*value, path, target, reading);
    });
  }
}

/// Puts the keys of a target into `writer`.
template <class Target>
void write_keys(const Keys<Target>& keys, const Target& target, Writer& writer) {
  for (const auto& key : keys) key.write(target, writer);
}

/// Reads a list of mappings: calls take(item, place, is_faultless) for each. Unknown keys are faults.
template <class Target, class Take>
void read_items(const Keys<Target>& keys, const std::vector<Value>& items, const std::string& path, Reading& reading,
                Take take) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string at = fmt::format("{}.{}", path, i);
    const std::size_t faults_before = reading.faults.count();
    Sections sections(Section(&items[i], at, items[i], reading.faults));
    Target target{};
    read_keys(keys, sections, target, reading);
    sections.refuse_unknown();
    take(std::move(target), items[i].place(at), reading.faults.count() == faults_before);
  }
}

/// Returns a target as a mapping in YAML's flow style.
template <class Target>
std::string flow_text(const Keys<Target>& keys, const Target& target) {
  Writer writer(keys.root());
  write_keys(keys, target, writer);
  return writer.flow();
}

}  // namespace orrery::config
