#include "value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

namespace orrery::config {
namespace {

bool is_index(std::string_view step) {
  return !step.empty() && step.find_first_not_of("0123456789") == std::string_view::npos && step.size() < 10;
}

/// Returns the child of `parent` that `step` names, made if it is a key that is not there yet.
Value& descend(Value& parent, const std::string& step, const std::string& path,
               const std::shared_ptr<const Origin>& origin) {
  const Place place{.file = origin->name, .key = path};
  if (parent.kind == Value::Kind::sequence) {
    if (!is_index(step) || std::stoul(step) >= parent.items.size())
      throw Error(ErrorCode::bad_input, place, fmt::format("no such entry in a list of {}", parent.items.size()),
                  "a position counted from 0", "");
    return parent.items[std::stoul(step)];
  }
  if (parent.kind == Value::Kind::scalar)
    throw Error(ErrorCode::bad_input, place, fmt::format("{} is here, which has no keys", parent.description()),
                "the path of a key", "");
  if (parent.kind == Value::Kind::null) {
    parent.kind = Value::Kind::mapping;
    parent.origin = origin;
    parent.line.reset();
  }
  for (auto& entry : parent.entries)
    if (entry.key == step) return entry.value;
  parent.entries.push_back({step,
                            {},
                            Value{.kind = Value::Kind::null,
                                  .text = {},
                                  .line = {},
                                  .origin = origin,
                                  .items = {},
                                  .entries = {},
                                  .notes = {}}});
  return parent.entries.back().value;
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (const auto& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

void Value::add(Entry entry, KeyIndex& index, Faults& faults) {
  const auto first = index.emplace(entry.key, entries.size()).first->second;
  if (first == entries.size()) {
    entries.push_back(std::move(entry));
    return;
  }
  const Entry& before = entries[first];
  const Place place{.file = origin->name, .line = entry.line, .key = entry.key};
  const Error again(ErrorCode::bad_input, place,
                    before.line ? fmt::format("the key stands here again, first in line {}", *before.line)
                                : std::string("the key stands here twice"),
                    "each key once", "Delete one of them.");
  if (!before.value.is_equal(entry.value))
    faults.add(again);
  else
    notes.push_back(Error(ErrorCode::bad_input, place, fmt::format("{}, with the same value", again.text())).what());
}

std::vector<std::string> Value::all_notes() const {
  std::vector<std::string> all = notes;
  const auto take = [&](const Value& below) { std::ranges::move(below.all_notes(), std::back_inserter(all)); };
  for (const Value& item : items) take(item);
  for (const Entry& entry : entries) take(entry.value);
  return all;
}

bool Value::is_equal(const Value& other) const {
  const auto same_entry = [](const Entry& a, const Entry& b) { return a.key == b.key && a.value.is_equal(b.value); };
  const auto same_item = [](const Value& a, const Value& b) { return a.is_equal(b); };
  return kind == other.kind && text == other.text && quoted == other.quoted &&
         std::ranges::equal(items, other.items, same_item) && std::ranges::equal(entries, other.entries, same_entry);
}

Place Value::place(std::string_view key) const {
  return {.file = origin ? origin->name : std::string(), .line = line, .key = std::string(key)};
}

std::string Value::description() const {
  switch (kind) {
    case Kind::null:
      return "nothing";
    case Kind::scalar:
      return quoted ? fmt::format("the text '{}'", cited(text)) : fmt::format("'{}'", cited(text));
    case Kind::sequence:
      return fmt::format("a list of {}", items.size());
    case Kind::mapping:
      return "a mapping";
  }
  return {};
}

Value option_value(std::string text) {
  Value value;
  value.kind = Value::Kind::scalar;
  value.text = std::move(text);
  value.origin = std::make_shared<const Origin>();
  return value;
}

void apply_override(Value& root, const std::string& setting, Faults& faults) {
  const auto equals = setting.find('=');
  const std::string path = setting.substr(0, equals);
  if (equals == std::string::npos || path.empty())
    throw Error(ErrorCode::usage,
                fmt::format("--set {}: expected KEY.PATH=VALUE, such as --set system.collectives.chunks=8", setting));
  const auto origin = std::make_shared<const Origin>(Origin{fmt::format("--set {}", setting), {}});
  Value value = parse_yaml(std::string_view(setting).substr(equals + 1), origin, faults);
  Value* target = &root;
  std::istringstream steps(path);
  std::string step, so_far;
  for (int depth = 1; std::getline(steps, step, '.'); ++depth) {
    if (depth > deepest_nesting)
      throw Error(ErrorCode::usage,
                  fmt::format("--set {}...: the key path has more than {} names", path.substr(0, 80), deepest_nesting));
    so_far += (so_far.empty() ? "" : ".") + step;
    if (step.empty()) throw Error(ErrorCode::usage, fmt::format("--set {}: an empty name in the key path", setting));
    target = &descend(*target, step, so_far, origin);
  }
  *target = std::move(value);
}

}  // namespace orrery::config
