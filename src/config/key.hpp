#pragma once

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "reading.hpp"
#include "section.hpp"
#include "text.hpp"
#include "types.hpp"
#include "writer.hpp"

namespace orrery::config {

/// What holds where a key is not given.
class Default {
 public:
  enum class Kind : std::uint8_t { built_in, value, described, needed, needed_in_mapping };

  /// The value that the member of the Options is initialised with.
  static constexpr Default built_in() { return {Kind::built_in, {}}; }
  /// The value that `text` would give if it stood in the file.
  static consteval Default value(Text text) { return {Kind::value, text.view()}; }
  /// What the reader does then, in words. The member keeps its initial value unless the key says more (Key::prepare).
  static consteval Default described(Text text) { return {Kind::described, text.view()}; }
  /// Nothing: a missing key is a fault.
  static constexpr Default needed() { return {Kind::needed, "needed"}; }
  /// Nothing: a missing key is a fault if the mapping that would hold it is there.
  static constexpr Default needed_in_mapping() { return {Kind::needed_in_mapping, "needed"}; }

  Kind kind() const { return kind_; }
  std::string_view text() const { return text_; }

 private:
  constexpr Default(Kind kind, std::string_view text) : kind_(kind), text_(text) {}

  Kind kind_;
  std::string_view text_;
};

/// A subcommand that may take the flag of a key.
enum class Taker : std::uint8_t { run, check, generate, partition, show_trace, show_topology, show_collective };

/// The headings of the help under which flags are listed, in this order.
enum class Heading : std::uint8_t { output, ranks, model, generated_parallel, generated_model, astra_sim };
std::string_view title(Heading heading);

/// The flag of a key on the command line.
struct Flag {
  Text name;                        ///< without its dashes
  Heading heading;                  ///< under which the help lists it
  std::string_view argument;        ///< what the help calls its value; empty if the value is true or false
  std::vector<Taker> commands;      ///< that take it
  std::string_view bare_unit = {};  ///< the unit of a number that is given without one; empty: there is none
};

/// What is said of a key of CONFIG.yaml. A descriptor that leaves a field out does not compile.
struct About {
  Text path;     ///< from the top of CONFIG.yaml
  Text help;     ///< what the value means: one line, which begins with a noun
  Text example;  ///< a value, as CONFIG.yaml has it
  Default otherwise;
  std::string_view see =
      {};  ///< the document that says more, from docs/, and perhaps its part: "memory.md, *Capacity*"
  std::optional<Flag> flag = {};
};

/// What is said of a key or flag of ASTRA-sim.
struct AboutAstraSim {
  Text name;     ///< the key, or the flag without its dashes
  Text becomes;  ///< the key of CONFIG.yaml that it sets, or "-" if it has no effect
  Text help;
  Default otherwise;
  std::optional<Flag> flag = {};
};

/// A key as tables, messages and the help see it.
struct KeyInfo {
  std::string path, becomes, help, example;
  TypeInfo type;
  Default otherwise;
  std::string default_text;  ///< the default as a value or in words; "needed"
  bool default_is_value = false;
  std::string needed_with = {};  ///< when the key is needed, if it is not always: "the roofline is on"
  std::string only_with = {};    ///< when the key is known, if it is not always: "shape: FatTree"
  std::string hint = {};         ///< what to do about a missing key
  std::string_view see = {};
  std::optional<Flag> flag = {};

  /// Returns what a message about the missing key ends with.
  std::string hint_if_missing() const { return hint.empty() ? fmt::format("Meaning: {}.", help) : hint; }
  /// Returns what a message expects where the key is missing. `reason` says why it is needed; it may be empty.
  std::string expected(std::string_view reason) const;
};

/// Whether the default of a key holds where its flag is not given: `orrery generate` has others without CONFIG.yaml.
bool tells_default(const KeyInfo& key);

/// Returns what is said of a key. Throws Error (internal) for what cannot be: a flag without a name for its value.
KeyInfo describe(const About& about, TypeInfo type);
KeyInfo describe(const AboutAstraSim& about, TypeInfo type);

/// Keys under one heading of the tables.
struct KeySection {
  std::string title;  ///< "system.network", "system.json", ...
  std::vector<const KeyInfo*> keys;
};

/// How the values of a key reach a `Target`, where a Type and an access to one member do not say it all.
template <class Target>
struct Handling {
  std::function<void(const Value& value, const std::string& path, Target& target, Reading& reading)> read;
  std::function<void(const Target& target, Writer& writer)> write;
  std::function<bool(const Target& a, const Target& b)> same;
};

/// The descriptor of one key, whose value becomes part of a `Target`.
template <class Target>
class Key {
 public:
  using Holds = std::function<bool(const Target&)>;
  using Check = std::function<void(const Target&, const Place&, const Reading&)>;

  Key(KeyInfo info, Handling<Target> handling) : info_(std::move(info)), handling_(std::move(handling)) {}

  // What else there is to say of a key. Each function returns the key.

  /// The message about a missing key ends with `text`, which says what to do, and not with what the key means.
  Key& hint(Text text) {
    info_.hint = text.string();
    return *this;
  }
  /// The key is needed if `holds`, because of `reason`: "the roofline is on".
  Key& needed_if(std::function<bool(const Target&, const Reading&)> holds, Text reason) {
    needed_ = std::move(holds);
    info_.needed_with = reason.string();
    return *this;
  }
  /// The key is unknown, and is not written, unless `holds`: `reason` is a setting such as "shape: FatTree".
  Key& only_if(Holds holds, Text reason) {
    applies_ = std::move(holds);
    info_.only_with = reason.string();
    return *this;
  }
  /// Where only_if does not hold the key is accepted without being read.
  Key& accepted_otherwise() {
    is_accepted_otherwise_ = true;
    return *this;
  }
  /// Sets the default, which depends on keys that are read before. Runs before the key is read.
  Key& prepare(std::function<void(Target&)> set_default) {
    prepare_ = std::move(set_default);
    return *this;
  }
  /// Runs after the key was read; throws Error (bad_input) at the place that it gets.
  Key& check(Check check) {
    check_ = std::move(check);
    return *this;
  }
  /// A fault if the key with this path, which is read before, is given too.
  Key& excludes(Text path) {
    excluded_ = path.string();
    return *this;
  }
  /// The resolved configuration has the key only if `holds`.
  Key& written_if(Holds holds) {
    written_ = std::move(holds);
    return *this;
  }
  /// The resolved configuration has the key only if its value is not the default.
  Key& written_unless_default() {
    return written_if([same = handling_.same](const Target& target) { return !same(target, Target()); });
  }

  const KeyInfo& info() const { return info_; }
  bool applies(const Target& target) const { return !applies_ || applies_(target); }
  bool is_accepted_otherwise() const { return is_accepted_otherwise_; }
  const std::string& excluded() const { return excluded_; }
  /// Returns why the key is needed for what has been read so far; none if it is not.
  std::optional<std::string_view> need(const Target& target, const Reading& reading, bool mapping_is_there) const;

  /// Sets what holds where the key is not given.
  void set_default(Target& target, Reading& reading) const;
  /// Reads a value and checks it. Throws Error (bad_input), or adds to reading.faults.
  void read(const Value& value, const std::string& path, Target& target, Reading& reading) const {
    handling_.read(value, path, target, reading);
    if (check_) check_(target, value.place(path), reading);
  }
  void write(const Target& target, Writer& writer) const {
    if (applies(target) && (!written_ || written_(target))) handling_.write(target, writer);
  }
  bool same(const Target& a, const Target& b) const { return handling_.same(a, b); }

 private:
  KeyInfo info_;
  Handling<Target> handling_;
  std::function<bool(const Target&, const Reading&)> needed_;
  Holds applies_, written_;
  std::function<void(Target&)> prepare_;
  Check check_;
  std::string excluded_;
  bool is_accepted_otherwise_ = false;
};

template <class Target>
std::optional<std::string_view> Key<Target>::need(const Target& target, const Reading& reading,
                                                  bool mapping_is_there) const {
  const Default::Kind kind = info_.otherwise.kind();
  if (needed_) return needed_(target, reading) ? std::optional<std::string_view>(info_.needed_with) : std::nullopt;
  if (kind == Default::Kind::needed || (kind == Default::Kind::needed_in_mapping && mapping_is_there))
    return std::string_view();
  return {};
}

template <class Target>
void Key<Target>::set_default(Target& target, Reading& reading) const {
  if (prepare_) prepare_(target);
  if (info_.otherwise.kind() != Default::Kind::value) return;
  Value value;
  value.kind = Value::Kind::scalar;
  value.text = info_.otherwise.text();
  handling_.read(value, info_.path, target, reading);
}

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
      if (given.contains(key.excluded()))
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
