#include "orrery/config/changes.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "resolution.hpp"
#include "types.hpp"
#include "value.hpp"

namespace orrery::config {
namespace {

/// Returns a scalar as YAML has it in a list of one line.
std::string scalar_text(const Value& value) {
  constexpr std::string_view marks = ",[]{}:#\"'&*!|>%@`";
  std::error_code failure;
  const bool names_file = value.text.find_first_of("./") != std::string::npos && value.origin != nullptr &&
                          std::filesystem::is_regular_file(value.origin->folder / value.text, failure);
  if (names_file) return in_quotes(std::filesystem::absolute(value.origin->folder / value.text).string());
  return value.quoted || value.text.empty() || value.text.find_first_of(marks) != std::string::npos
             ? in_quotes(value.text)
             : value.text;
}

/// Returns a key of a mapping as YAML has it.
std::string key_text(const std::string& key) {
  const auto is_plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; };
  return !key.empty() && std::ranges::all_of(key, is_plain) ? key : in_quotes(key);
}

/// Returns a value in YAML's flow style.
std::string flow_of(const Value& value) {
  std::string text;
  const auto add = [&](std::string_view item) {
    if (!text.empty()) text += ", ";
    text += item;
  };
  switch (value.kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::scalar:
      return scalar_text(value);
    case Value::Kind::sequence:
      for (const Value& item : value.items) add(flow_of(item));
      return fmt::format("[{}]", text);
    case Value::Kind::mapping:
      for (const Value::Entry& entry : value.entries)
        add(fmt::format("{}: {}", key_text(entry.key), flow_of(entry.value)));
      return fmt::format("{{{}}}", text);
  }
  return {};
}

/// Writes the mappings of the upper levels with one key in a line.
void write_block(const Value& mapping, std::size_t depth, std::string& text) {
  constexpr std::size_t most_levels = 3;
  for (const Value::Entry& entry : mapping.entries) {
    const bool is_open = entry.value.kind == Value::Kind::mapping && depth + 1 < most_levels;
    text += fmt::format("{}{}:{}{}\n", std::string(2 * depth, ' '), key_text(entry.key), is_open ? "" : " ",
                        is_open ? "" : flow_of(entry.value));
    if (is_open) write_block(entry.value, depth + 1, text);
  }
}

/// Returns the value at a path; null if there is none.
const Value* at_path_of(const Value& root, std::string_view path) {
  const Value* at = &root;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    at = at->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return at;
}

/// Returns the part of a path before the first position in a list.
std::string_view before_positions(std::string_view path) {
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const std::string_view name = path.substr(dot + 1, path.find('.', dot + 1) - dot - 1);
    if (!name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; }))
      return path.substr(0, dot);
  }
  return path;
}

}  // namespace

std::string changes_text(const Inputs& inputs, const std::filesystem::path& base) {
  Configuration unused;
  Faults faults;
  const Value whole = read_root(inputs, unused, faults);
  Value changes;
  std::vector<std::string> settings = inputs.overrides;
  std::ranges::stable_sort(settings, {}, [](const std::string& setting) {
    return std::count(setting.begin(), std::ranges::find(setting, '='), '.');
  });
  for (const std::string& setting : settings) {
    const std::string_view path = std::string_view(setting).substr(0, setting.find('='));
    const std::string_view holder = before_positions(path);
    Value given;
    apply_override(given, setting, faults);  // its origin starts in the current folder
    const Value* const value = holder == path ? at_path_of(given, path) : at_path_of(whole, holder);
    if (value != nullptr) apply_override(changes, fmt::format("{}={}", holder, flow_of(*value)), faults);
  }
  faults.raise();
  std::string text = fmt::format("base: {}\n", in_quotes(base.string()));
  write_block(changes, 0, text);
  return text;
}

}  // namespace orrery::config
