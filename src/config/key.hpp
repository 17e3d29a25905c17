#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "key_info.hpp"
#include "reading.hpp"
#include "text.hpp"
#include "value.hpp"
#include "writer.hpp"

namespace orrery::config {

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

  /// Sets how the message about a missing key ends: with `text`, which says what to do, and not with what it means.
  Key& hint(Text text) {
    info_.hint = text.string();
    return *this;
  }
  /// Makes the key needed if `holds`, because of `reason`: "the roofline is on".
  Key& needed_if(std::function<bool(const Target&, const Reading&)> holds, Text reason) {
    needed_ = std::move(holds);
    info_.needed_with = reason.string();
    return *this;
  }
  /// Makes the key unknown, and leaves it unwritten, unless `holds`: `reason` is a setting such as "shape: FatTree".
  Key& only_if(Holds holds, Text reason) {
    applies_ = std::move(holds);
    info_.only_with = reason.string();
    return *this;
  }
  /// Does the same for a key whose KeyInfo::only_with is set.
  Key& only_if(Holds holds) {
    applies_ = std::move(holds);
    return *this;
  }
  /// Accepts the key without reading it where only_if does not hold.
  Key& accepted_otherwise() {
    is_accepted_otherwise_ = true;
    return *this;
  }
  /// Sets the default, which depends on keys that are read before. Runs before the key is read.
  Key& prepare(std::function<void(Target&)> set_default) {
    prepare_ = std::move(set_default);
    return *this;
  }
  /// Adds a check that runs after the key was read. It throws Error (bad_input) at the place that it gets.
  Key& check(Check check) {
    check_ = std::move(check);
    return *this;
  }
  /// Makes it a fault if the key with this path, which is read before, is given too.
  Key& excludes(Text path) {
    excluded_ = path.string();
    return *this;
  }
  /// Writes the key into the resolved configuration only if `holds`.
  Key& written_if(Holds holds) {
    written_ = std::move(holds);
    return *this;
  }
  /// Writes the key into the resolved configuration only if its value is not the default.
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

}  // namespace orrery::config
