#include <charconv>
#include <memory>

#include "orrery/config/read.hpp"
#include "orrery/config/study.hpp"
#include "value.hpp"

namespace orrery::config {
namespace {

/// Returns the value of an entry of a mapping or a list; null if there is none.
const Value* entry_of(const Value& value, std::string_view name) {
  if (value.kind != Value::Kind::sequence) return value.find(name);
  std::size_t position = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), position);
  const bool is_position = read.ec == std::errc() && read.ptr == name.data() + name.size();
  return is_position && position < value.items.size() ? &value.items[position] : nullptr;
}

const Value* value_at(const Value& root, std::string_view key) {
  const Value* at = &root;
  while (at != nullptr && !key.empty()) {
    const std::size_t dot = key.find('.');
    at = entry_of(*at, key.substr(0, dot));
    key = dot == std::string_view::npos ? std::string_view() : key.substr(dot + 1);
  }
  return at;
}

}  // namespace

std::map<std::string, std::string> read_values(const Inputs& inputs, const std::vector<std::string>& keys) {
  Faults faults;
  const Value root =
      parse_yaml(read(inputs).to_yaml(), std::make_shared<const Origin>(Origin{inputs.file.string(), {}}), faults);
  faults.raise();
  std::map<std::string, std::string> values;
  for (const std::string& key : keys)
    if (const Value* const found = value_at(root, key); found != nullptr && found->kind == Value::Kind::scalar)
      values[key] = found->text;
  return values;
}

}  // namespace orrery::config
