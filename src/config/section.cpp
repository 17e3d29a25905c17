#include "section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "orrery/base/quantity_text.hpp"
#include "orrery/base/suggestion.hpp"

namespace orrery::config {
namespace {

constexpr double longest_latency_ns = 1e12;

[[noreturn]] void refuse(const Value& value, const std::string& key, std::string_view expected,
                         std::string_view hint = {}) {
  throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()), expected, hint);
}

/// The text of a scalar that may be a quantity; quotes do no harm.
const std::string& scalar(const Value& value, const std::string& key, std::string_view expected) {
  if (value.kind != Value::Kind::scalar) refuse(value, key, expected);
  return value.text;
}

}  // namespace

std::string as_text(const Value& value, const std::string& key, std::string_view expected) {
  const std::string& text = scalar(value, key, expected);
  if (text.empty()) refuse(value, key, expected);
  return text;
}

bool as_bool(const Value& value, const std::string& key) {
  if (value.kind == Value::Kind::scalar && !value.quoted) {
    if (value.text == "true") return true;
    if (value.text == "false") return false;
  }
  refuse(value, key, "true or false");
}

std::uint32_t as_count(const Value& value, const std::string& key, std::uint32_t minimum, std::uint32_t maximum) {
  if (value.kind != Value::Kind::scalar || value.quoted)
    refuse(value, key, fmt::format("a whole number, {} or more", minimum));
  return static_cast<std::uint32_t>(parse_count(value.text, minimum, maximum, value.place(key)));
}

double as_share(const Value& value, const std::string& key) {
  const double share = as_number(value, key);
  if (!(share < 1)) refuse(value, key, "0 or more and below 1");
  return share;
}

double as_number(const Value& value, const std::string& key, std::string_view range) {
  if (value.kind != Value::Kind::scalar || value.quoted) refuse(value, key, fmt::format("a number, {}", range));
  return parse_number(value.text, value.place(key), range);
}

Bandwidth as_bandwidth(const Value& value, const std::string& key) {
  const std::string_view expected = "a bandwidth with its unit, such as '400 GB/s'";
  const Bandwidth bandwidth = parse_bandwidth(scalar(value, key, expected), value.place(key));
  if (bandwidth.bytes_per_ns() < 1e-9) refuse(value, key, "a bandwidth of 1 B/s or more");
  return bandwidth;
}

double as_nanoseconds(const Value& value, const std::string& key) {
  const double ns = parse_nanoseconds(scalar(value, key, "a time with its unit, such as '500 ns'"), value.place(key));
  if (ns > longest_latency_ns) refuse(value, key, "at most 1000 s");
  return ns;
}

double as_seconds(const Value& value, const std::string& key) {
  return parse_seconds(scalar(value, key, "a wall-clock time with its unit, such as '30 s'"), value.place(key));
}

double as_flops(const Value& value, const std::string& key) {
  const double flops =
      parse_flops(scalar(value, key, "a compute rate with its unit, such as '989 TFLOPS'"), value.place(key));
  if (!(flops > 0)) refuse(value, key, "more than 0");
  return flops;
}

std::filesystem::path as_path(const Value& value, const std::string& key) {
  const std::filesystem::path path = as_text(value, key, "the name of a file");
  if (value.origin->name.empty()) return path;  // an option of the command line: as it was typed
  return (path.is_absolute() ? path : value.origin->folder / path).lexically_normal();
}

const std::vector<Value>& as_list(const Value& value, const std::string& key, std::string_view expected) {
  if (value.kind != Value::Kind::sequence || value.items.empty()) refuse(value, key, expected);
  return value.items;
}

void refuse_word(const Value& value, const std::string& key, const std::vector<std::string_view>& known) {
  const auto near = value.kind == Value::Kind::scalar ? nearest(value.text, known) : std::string_view{};
  throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()), list(known),
              near.empty() ? std::string() : fmt::format("Did you mean '{}'?", near));
}

Section::Section(const Value* mapping, std::string path, const Value& parent, Faults& faults)
    : path_(std::move(path)), parent_(parent), faults_(faults) {
  if (mapping == nullptr || mapping->kind == Value::Kind::null) return;
  if (mapping->kind == Value::Kind::mapping && !mapping->faulty) {
    mapping_ = mapping;
    return;
  }
  is_broken_ = true;
  if (mapping->faulty) return;
  faults_.add(Error(ErrorCode::bad_input, mapping->place(path_), fmt::format("found {}", mapping->description()),
                    "a mapping of keys to values"));
}

const Value* Section::find(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.push_back(key);
  const Value* const value = mapping_ == nullptr ? nullptr : mapping_->find(key);
  return value == nullptr || value->kind == Value::Kind::null ? nullptr : value;
}

const Value* Section::need(std::string_view key, std::string_view expected, std::string_view hint) {
  const Value* const value = find(key);
  if (value != nullptr || is_broken_) return value;
  std::vector<std::string_view> others;
  for (const auto* entry : unknown() | std::views::take(most_suggestions)) others.push_back(entry->key);
  const auto near = nearest(key, others);
  faults_.add(Error(ErrorCode::bad_input, place(key), "the key is missing", expected,
                    near.empty() ? std::string(hint) : fmt::format("Is '{}' meant for it?", near)));
  return value;
}

Section Section::section(std::string_view key) {
  Section section(find(key), path(key), mapping_ == nullptr ? parent_ : *mapping_, faults_);
  section.is_broken_ |= is_broken_;
  return section;
}

std::vector<const Value::Entry*> Section::unknown() const {
  std::vector<const Value::Entry*> entries;
  if (mapping_ == nullptr) return entries;
  for (const auto& entry : mapping_->entries)
    if (std::ranges::find(known_, entry.key) == known_.end()) entries.push_back(&entry);
  return entries;
}

void Section::refuse_unknown() {
  std::size_t suggestions = 0;
  for (const auto* entry : unknown()) {
    Place where = entry->value.place(path(entry->key));
    if (entry->line) where.line = entry->line;
    const auto elsewhere = std::ranges::find(elsewhere_, entry->key, &decltype(elsewhere_)::value_type::first);
    if (elsewhere != elsewhere_.end())
      faults_.add(Error(ErrorCode::bad_input, where, "the key has no meaning here",
                        fmt::format("it only with {}", elsewhere->second)));
    else
      faults_.add(Error(ErrorCode::bad_input, where, "unknown key", "",
                        ++suggestions > most_suggestions ? std::string() : suggestion(entry->key, known_)));
  }
}

std::string Section::path(std::string_view key) const {
  std::string path;  // without fmt::format, because studies read a great many configurations
  path.reserve(path_.size() + 1 + key.size());
  if (!path_.empty()) path.append(path_).push_back('.');
  return path.append(key);
}

Place Section::place(std::string_view key) const {
  return mapping_ == nullptr ? parent_.place(path(key)) : mapping_->place(path(key));
}

}  // namespace orrery::config
