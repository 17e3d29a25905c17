#include "key_table.hpp"

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::config {

std::optional<std::string_view> AnyKey::need(const void* target, const Reading& reading, bool mapping_is_there) const {
  if (const auto is_needed_now = is_needed(target, reading))
    return *is_needed_now ? std::optional<std::string_view>(info_.needed_with) : std::nullopt;
  const Default::Kind kind = info_.otherwise.kind();
  if (kind == Default::Kind::needed || (kind == Default::Kind::needed_in_mapping && mapping_is_there))
    return std::string_view();
  return {};
}

void AnyKey::set_default(void* target, Reading& reading) const {
  prepare(target);
  if (info_.otherwise.kind() != Default::Kind::value) return;
  Value value;
  value.kind = Value::Kind::scalar;
  value.text = info_.otherwise.text();
  take(value, info_.path, target, reading);
}

void AnyKey::set_default_text(std::optional<std::string> text) {
  ensure(text.has_value(), "a built-in default can be written");
  info_.default_text = std::move(*text);
}

void AnyKeys::add(std::unique_ptr<const AnyKey> key) {
  ensure(root_.empty() || key->info().path.starts_with(root_ + "."),
         "the path of a key begins with that of its mapping");
  ensure(by_path_.emplace(key->info().path, key.get()).second, "each key has one descriptor");
  keys_.push_back(std::move(key));
}

KeySection AnyKeys::section() const {
  KeySection section{title_, {}};
  for (const auto& key : keys_) section.keys.push_back(&key->info());
  return section;
}

Section& Sections::at(std::string_view path) {
  if (const auto found = open_.find(path); found != open_.end()) return found->second;
  const auto dot = path.rfind('.');
  Section& parent = at(dot == std::string_view::npos ? std::string_view() : path.substr(0, dot));
  const std::string_view name = dot == std::string_view::npos ? path : path.substr(dot + 1);
  return open_.emplace(std::string(path), parent.section(name)).first->second;
}

void Sections::refuse_unknown() {
  for (auto& [path, section] : open_) section.refuse_unknown();
}

void read_any_keys(const AnyKeys& keys, Sections& sections, void* target, Reading& reading) {
  std::map<std::string_view, Place> given;
  for (const auto& key : keys) {
    const std::string_view below =
        std::string_view(key->info().path).substr(keys.root().empty() ? 0 : keys.root().size() + 1);
    const auto dot = below.rfind('.');
    Section& section = sections.at(dot == std::string_view::npos ? std::string_view() : below.substr(0, dot));
    const std::string_view name = dot == std::string_view::npos ? below : below.substr(dot + 1);
    if (!key->applies(target)) {
      if (key->is_accepted_otherwise())
        section.find(name);
      else
        section.note_elsewhere(name, key->info().only_with);
      continue;
    }
    key->set_default(target, reading);
    const auto reason = key->need(target, reading, section.present());
    const Value* const value =
        reason ? section.need(name, key->info().expected(*reason), key->info().hint_if_missing()) : section.find(name);
    if (value == nullptr) continue;
    const std::string path = section.path(name);
    const Place place = value->place(path);
    given.emplace(key->info().path, place);
    reading.note_place(key->info(), place);
    reading.faults.attempt([&] {
      if (given.contains(key->excluded()) || reading.configuration.places.contains(key->excluded()))
        throw Error(ErrorCode::bad_input, place, fmt::format("{} is given too", key->excluded()), "one of them");
      key->read(*value, path, target, reading);
      if (!key->is_default(target, reading)) reading.configuration.changed_keys[path] = place.file;
    });
  }
}

bool read_any_item(const AnyKeys& keys, const Value& item, const std::string& path, void* target, Reading& reading) {
  const std::size_t faults_before = reading.faults.count();
  Sections sections(Section(&item, path, item, reading.faults));
  read_any_keys(keys, sections, target, reading);
  sections.refuse_unknown();
  return reading.faults.count() == faults_before;
}

void write_any_keys(const AnyKeys& keys, const void* target, Writer& writer) {
  for (const auto& key : keys) key->write(target, writer);
}

}  // namespace orrery::config
