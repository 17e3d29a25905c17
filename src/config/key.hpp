#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "key_info.hpp"
#include "orrery/base/error.hpp"
#include "reading.hpp"
#include "value.hpp"
#include "writer.hpp"

namespace orrery::config {

/// How the values of a key reach a `Target`, where a Type and one member do not say it all. Without `write` the key is
/// not written, and without `same` it is not compared.
template <class Target>
struct Handling {
  void (*read)(const Value& value, const std::string& path, Target& target, Reading& reading) = nullptr;
  void (*write)(const Target& target, std::string_view path, Writer& writer) = nullptr;
  bool (*same)(const Target& a, const Target& b) = nullptr;
};

/// One row of a table of keys: the descriptor of a key, whose value becomes part of a `Target`. A row that lacks the
/// path, the help, the example or the default does not compile. What else there is to say follows: see(), flag(), ...
template <class Target>
struct Row {
  /// A key whose value is one member of the type: access(target) returns its address.
  template <class T, std::invocable<Target&> Access, class... Facts>
  consteval Row(Text path, Text help, Text example, Default otherwise, const Type<T>& type, Access, Facts... facts)
      : about{path, {}, help, example.view(), otherwise, type} {
    static_assert(std::is_same_v<std::invoke_result_t<Access, Target&>, T*>, "the member has the type of the values");
    member = [](Target& target) -> void* { return Access{}(target); };
    (facts(*this), ...);
  }
  /// Any other key.
  template <class... Facts>
  consteval Row(Text path, Text help, Text example, Default otherwise, ValueInfo values, Handling<Target> handled,
                Facts... facts)
      : about{path, {}, help, example.view(), otherwise, values}, handling(handled) {
    (facts(*this), ...);
  }

  Description about;
  void* (*member)(Target&) = nullptr;  ///< null: there is a handling
  Handling<Target> handling = {};
  bool (*needed_if)(const Target&, const Reading&) = nullptr;
  bool (*only_if)(const Target&) = nullptr;
  bool accepted_otherwise = false;
  void (*prepare)(Target&) = nullptr;
  void (*check)(const Target&, const Place&, const Reading&) = nullptr;
  std::string_view excludes = {};
  bool (*written_if)(const Target&) = nullptr;
  bool written_unless_default = false;
};

/// The row of a key or flag of ASTRA-sim. `becomes` is the key of CONFIG.yaml that it sets, or "-" if it has no effect.
template <class Target>
struct AstraSimRow : Row<Target> {
  template <class Values, class Access, class... Facts>
  consteval AstraSimRow(Text name, Text becomes, Text help, Default otherwise, const Values& values, Access access,
                        Facts... facts)
      : Row<Target>(name, help, "-", otherwise, values, access, facts...) {
    this->about.becomes = becomes.view();
    this->about.example = {};
  }
};

// What else a row may say of its key.

/// Names the document that says more, from docs/, and perhaps its part: "memory.md, *Capacity*".
constexpr auto see(Text document) {
  return [=](auto& row) { row.about.see = document.view(); };
}
/// Gives the key a flag. `argument`: what the help calls its value; empty if the value is true or false.
constexpr auto flag(Text name, Heading heading, std::string_view argument, Takers commands,
                    std::string_view bare_unit = {}) {
  return [=](auto& row) { row.about.flag = Flag{name, heading, argument, commands, bare_unit}; };
}
/// Sets how the message about a missing key ends: with `text`, which says what to do, and not with what it means.
constexpr auto hint(Text text) {
  return [=](auto& row) { row.about.hint = text.view(); };
}
/// Makes the key needed if holds(target, reading), because of `reason`: "the roofline is on".
template <class Holds>
constexpr auto needed_if(Holds holds, Text reason) {
  return [=](auto& row) {
    row.needed_if = holds;
    row.about.needed_with = reason.view();
  };
}
/// Makes the key unknown, and leaves it unwritten, unless holds(target): `reason` is a setting such as "shape:
/// FatTree".
template <class Holds>
constexpr auto only_if(Holds holds, Text reason) {
  return [=](auto& row) {
    row.only_if = holds;
    row.about.only_with = reason.view();
  };
}
/// Accepts the key without reading it where only_if does not hold.
constexpr auto accepted_otherwise() {
  return [](auto& row) { row.accepted_otherwise = true; };
}
/// Sets the default by set_default(target), which may depend on keys that are read before. Runs before the key is read.
template <class SetDefault>
constexpr auto prepare(SetDefault set_default) {
  return [=](auto& row) { row.prepare = set_default; };
}
/// Adds check(target, place, reading), which runs after the key was read and throws Error (bad_input) at `place`.
template <class Check>
constexpr auto check(Check check) {
  return [=](auto& row) { row.check = check; };
}
/// Makes it a fault if the key with this path, which is read before, is given too.
constexpr auto excludes(Text path) {
  return [=](auto& row) { row.excludes = path.view(); };
}
/// Writes the key into the resolved configuration only if holds(target).
template <class Holds>
constexpr auto written_if(Holds holds) {
  return [=](auto& row) { row.written_if = holds; };
}
/// Writes the key into the resolved configuration only if its value is not the default.
constexpr auto written_unless_default() {
  return [](auto& row) { row.written_unless_default = true; };
}

/// A key as readers and writers use it. `target`, `a` and `b` are addresses of objects of the type that its row names.
class AnyKey {
 public:
  explicit AnyKey(KeyInfo info) : info_(std::move(info)) {}
  AnyKey(const AnyKey&) = delete;
  AnyKey& operator=(const AnyKey&) = delete;
  virtual ~AnyKey() = default;

  const KeyInfo& info() const { return info_; }
  virtual bool applies(const void* target) const = 0;
  virtual bool is_accepted_otherwise() const { return false; }
  /// Returns the path of a key that is not given together with this one; empty if there is none.
  virtual std::string_view excluded() const { return {}; }
  /// Returns whether a missing key is a fault for a reason of its own; none if its default decides.
  virtual std::optional<bool> is_needed(const void*, const Reading&) const { return std::nullopt; }
  /// Sets a default that depends on what was read before.
  virtual void prepare(void* target) const = 0;
  /// Reads a value. Throws Error (bad_input), or adds to reading.faults.
  virtual void take(const Value& value, const std::string& path, void* target, Reading& reading) const = 0;
  /// Checks what was read. Throws Error (bad_input) at `place`.
  virtual void check(const void*, const Place&, const Reading&) const {}
  /// Writes the key, unless the resolved configuration leaves it out.
  virtual void write(const void* target, Writer& writer) const = 0;
  virtual bool same(const void* a, const void* b) const = 0;
  /// Says whether a target has the value that it has where the key is not given; false if that cannot be told.
  virtual bool is_default(const void*, Reading&) const { return false; }

  /// Reads a value and checks it. Throws Error (bad_input), or adds to reading.faults.
  void read(const Value& value, const std::string& path, void* target, Reading& reading) const {
    take(value, path, target, reading);
    check(target, value.place(path), reading);
  }
  /// Returns why the key is needed for what has been read so far; none if it is not.
  std::optional<std::string_view> need(const void* target, const Reading& reading, bool mapping_is_there) const;
  /// Sets what holds where the key is not given.
  void set_default(void* target, Reading& reading) const;

 protected:
  void set_default_text(std::optional<std::string> text);

 private:
  KeyInfo info_;
};

/// The key that a row describes.
template <class Target>
class Key final : public AnyKey {
 public:
  explicit Key(const Row<Target>& row) : AnyKey(describe(row.about)), row_(row) {
    if (row.about.otherwise.kind() == Default::Kind::built_in) {
      Target initial{};
      set_default_text(kind().text(limits(), row.member(initial)));
    }
  }

  bool applies(const void* target) const override { return row_.only_if == nullptr || row_.only_if(of(target)); }
  bool is_accepted_otherwise() const override { return row_.accepted_otherwise; }
  std::string_view excluded() const override { return row_.excludes; }
  std::optional<bool> is_needed(const void* target, const Reading& reading) const override {
    if (row_.needed_if == nullptr) return std::nullopt;
    return row_.needed_if(of(target), reading);
  }
  void prepare(void* target) const override {
    if (row_.prepare != nullptr) row_.prepare(*static_cast<Target*>(target));
  }
  void take(const Value& value, const std::string& path, void* target, Reading& reading) const override {
    Target& into = *static_cast<Target*>(target);
    if (row_.member != nullptr)
      kind().read(limits(), value, path, reading, row_.member(into));
    else
      row_.handling.read(value, path, into, reading);
  }
  void check(const void* target, const Place& place, const Reading& reading) const override {
    if (row_.check != nullptr) row_.check(of(target), place, reading);
  }
  void write(const void* target, Writer& writer) const override {
    if (!applies(target) || (row_.written_if != nullptr && !row_.written_if(of(target)))) return;
    if (row_.written_unless_default) {
      const Target initial{};
      if (same(target, &initial)) return;
    }
    if (row_.member == nullptr) {
      if (row_.handling.write != nullptr) row_.handling.write(of(target), info().path, writer);
    } else if (auto text = kind().text(limits(), member(target))) {
      writer.put(info().path, std::move(*text));
    }
  }
  bool same(const void* a, const void* b) const override {
    if (row_.member != nullptr) return kind().same(member(a), member(b));
    return row_.handling.same == nullptr || row_.handling.same(of(a), of(b));
  }
  bool is_default(const void* target, Reading& reading) const override {
    if (row_.member == nullptr && row_.handling.same == nullptr) return false;
    Target initial = row_.prepare != nullptr ? of(target) : Target{};  // such a default depends on other keys
    set_default(&initial, reading);
    return same(target, &initial);
  }

 private:
  static const Target& of(const void* target) { return *static_cast<const Target*>(target); }
  const AnyValueKind& kind() const { return *row_.about.values.kind(); }
  const Limits& limits() const { return row_.about.values.limits(); }
  /// Returns the address of the member, which the row takes of a target that it may change.
  const void* member(const void* target) const { return row_.member(const_cast<Target&>(of(target))); }

  const Row<Target>& row_;
};

}  // namespace orrery::config
