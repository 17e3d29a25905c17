#include "schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "key_table.hpp"
#include "keys/keys.hpp"

namespace orrery::config {
namespace {

using nlohmann::ordered_json;

/// A key with those below it.
struct SchemaNode {
  std::vector<const KeyInfo*> keys;  ///< descriptors of this path: several where models of kinds have one name
  std::map<std::string, SchemaNode> below;
};

/// Returns what values a key takes, as far as its own descriptor says.
ordered_json values_of(const KeyInfo& key) {
  const TypeInfo& type = key.type;
  const bool has_plain_words = std::ranges::none_of(
      type.words, [](const WordInfo& word) { return word.text.find_first_of("<>") != std::string_view::npos; });
  if (type.name == "word" && has_plain_words) {
    ordered_json words = ordered_json::array();
    for (const WordInfo& word : type.words) words.push_back(word.text);
    return {{"enum", words}};
  }
  if (type.name == boolean_name) return {{"type", "boolean"}};
  if (type.name == "whole number") return {{"type", {"integer", "string"}}};  // a torus has sizes such as 4x8
  if (type.name == "number") return {{"type", "number"}};
  return ordered_json::object();
}

std::string description_of(const KeyInfo& key) {
  std::string text =
      fmt::format("{} ({}{}{})", key.help, key.type.name, key.type.range.empty() ? "" : "; ", key.type.range);
  std::erase(text, '`');
  if (!key.example.empty()) text += fmt::format(". Example: {}", key.example);
  return text;
}

/// Returns the schema of a node. The mappings below it go to `definitions`, by their paths.
ordered_json schema_of(const SchemaNode& node, const std::string& path, ordered_json& definitions) {
  ordered_json schema = ordered_json::object();
  if (!node.keys.empty()) schema["description"] = description_of(*node.keys.front());
  if (node.below.empty()) {
    if (node.keys.size() == 1) schema.update(values_of(*node.keys.front()));
    return schema;
  }
  if (!definitions.contains(path)) {
    definitions[path] = ordered_json::object();
    ordered_json properties = ordered_json::object();
    for (const auto& [name, below] : node.below)
      properties[name] =
          schema_of(below, path == "jobs" && name == "workload" ? name : fmt::format("{}.{}", path, name), definitions);
    definitions[path] = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  }
  const ordered_json mapping = {{"$ref", fmt::format("#/definitions/{}", path)}};
  const ordered_json plain = {{"type", {"string", "number", "boolean", "null"}}};
  // A mapping may stand alone, in a list, or in a file or preset that is named in its place.
  schema["anyOf"] = ordered_json::array(
      {mapping,
       ordered_json{{"type", "array"},
                    {"items", {{"anyOf", ordered_json::array({mapping, plain, {{"type", "array"}}})}}}},
       plain});
  return schema;
}

}  // namespace

std::string json_schema() {
  SchemaNode root;
  for (const KeySection& section : key_sections())
    for (const KeyInfo* const key : section.keys) {
      if (!key->becomes.empty()) continue;  // a key or a flag of ASTRA-sim
      SchemaNode* at = &root;
      for (std::string_view rest = key->path; !rest.empty();) {
        const std::size_t dot = rest.find('.');
        at = &at->below[std::string(rest.substr(0, dot))];
        rest = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
      }
      at->keys.push_back(key);
    }
  root.below["base"];
  root.below["stack"];
  root.below["workload"].below["traces"].below["all"];  // {all: FILE}
  root.below["jobs"].below["workload"].below = root.below["workload"].below;
  ordered_json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                         {"title", "CONFIG.yaml of Orrery"},
                         {"type", "object"},
                         {"properties", ordered_json::object()},
                         {"additionalProperties", false}};
  ordered_json definitions = ordered_json::object();
  for (const auto& [name, node] : root.below) schema["properties"][name] = schema_of(node, name, definitions);
  schema["definitions"] = std::move(definitions);
  return schema.dump(1) + "\n";
}

}  // namespace orrery::config
