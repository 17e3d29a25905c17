#include "group_definitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "wire.hpp"

namespace orrery::trace {
namespace {

constexpr std::string_view init_name = "## process_group:init ##";

/// Returns the name of a group, which is a text or a number; nothing if there is none.
std::optional<std::string> group_name(const nlohmann::json& entry) {
  const auto found = entry.find("pg_name");
  if (found == entry.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number_unsigned()) return fmt::format("{}", found->get<std::uint64_t>());
  return std::nullopt;
}

/// Returns the ranks of a group, which are a list or the keys of an object.
std::optional<std::vector<std::uint64_t>> group_ranks(const nlohmann::json& entry) {
  std::vector<std::uint64_t> ranks;
  const auto found = entry.find("ranks");
  if (found == entry.end() || found->is_null()) return ranks;
  if (found->is_array()) {
    for (const auto& rank : *found) {
      if (!rank.is_number_unsigned()) return std::nullopt;
      ranks.push_back(rank.get<std::uint64_t>());
    }
    return ranks;
  }
  if (!found->is_object()) return std::nullopt;
  for (const auto& item : found->items()) {
    std::uint64_t rank = 0;
    const std::string& key = item.key();
    const auto result = std::from_chars(key.data(), key.data() + key.size(), rank);
    if (result.ec != std::errc{} || result.ptr != key.data() + key.size()) return std::nullopt;
    ranks.push_back(rank);
  }
  std::ranges::sort(ranks);
  return ranks;
}

void add_definition(const std::string& name, GroupDefinition definition, ParsedTrace& trace) {
  const auto [known, added] = trace.definitions.try_emplace(name, std::move(definition));
  if (!added && known->second.members != definition.members) known->second.conflicting = true;
}

/// Returns the list of groups within a text. It may be surrounded, for instance quoted within a printed list: it begins
/// at the last "[" before the first object and ends at the first "]" after the last one.
std::string_view list_within(std::string_view text) {
  const auto object = text.find('{');
  const auto last_object = text.rfind('}');
  if (object == std::string_view::npos || last_object == std::string_view::npos || last_object < object) return text;
  const auto first = text.substr(0, object).rfind('[');
  const auto last = text.find(']', last_object);
  if (first == std::string_view::npos || last == std::string_view::npos) return text;
  return text.substr(first, last - first + 1);
}

bool read_list(std::string_view text, ParsedTrace& trace) {
  const auto list = nlohmann::json::parse(list_within(text), nullptr, false);
  if (!list.is_array()) return false;
  for (const auto& entry : list) {
    if (!entry.is_object()) return false;
    auto name = group_name(entry);
    auto ranks = group_ranks(entry);
    if (!name || !ranks) return false;
    add_definition(*name, {std::move(*ranks), false}, trace);
  }
  return true;
}

}  // namespace

bool is_group_definition(std::string_view node_name) { return node_name.starts_with(init_name); }

void read_group_definitions(std::string_view inputs, ParsedTrace& trace) {
  Input input = input_over(inputs);
  bool good = true;
  while (const std::uint32_t tag = next_tag(input)) {
    std::string_view values;
    if (tag == make_tag(1, WireType::bytes)) {
      good = read_view(input, values);
      if (good && values.find_first_not_of(" \t\r\n") != std::string_view::npos) good = read_list(values, trace);
    } else {
      good = skip_field(input, tag);
    }
    if (!good) break;
  }
  if (!good) ++trace.unreadable_definitions;
}

void read_group_list(std::string_view text, ParsedTrace& trace) {
  if (text.find_first_not_of(" \t\r\n") != std::string_view::npos && !read_list(text, trace))
    ++trace.unreadable_definitions;
}

}  // namespace orrery::trace
