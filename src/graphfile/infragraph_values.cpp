// The values of YAML and JSON texts.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "infragraph_document.hpp"
#include "orrery/base/error.hpp"

namespace orrery::graphfile {
namespace {

constexpr int deepest_values = 64;
constexpr std::size_t most_yaml_values = 4'000'000;  // aliases can stand for far more than was written

class YamlValues {
 public:
  explicit YamlValues(const std::string& file) : file_(file) {}

  nlohmann::json convert(const YAML::Node& node, int depth) {
    if (depth > deepest_values || ++count_ > most_yaml_values)
      throw Error(ErrorCode::bad_input, place(node), "values are nested too deeply, or are too many",
                  "a description of InfraGraph");
    if (node.IsScalar()) return node.Scalar();
    if (node.IsSequence()) {
      auto list = nlohmann::json::array();
      for (const auto& item : node) list.push_back(convert(item, depth + 1));
      return list;
    }
    if (!node.IsMap()) return nullptr;
    auto object = nlohmann::json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar())
        throw Error(ErrorCode::bad_input, place(entry.first), "a key is no word", "keys that are words");
      const auto [at, is_new] = object.emplace(entry.first.Scalar(), nullptr);
      if (!is_new)
        throw Error(ErrorCode::bad_input, place(entry.first),
                    fmt::format("the key '{}' is there twice", cited(entry.first.Scalar())), "each key once");
      *at = convert(entry.second, depth + 1);
    }
    return object;
  }

 private:
  Place place(const YAML::Node& node) const {
    if (node.Mark().is_null()) return {.file = file_};
    return {.file = file_, .line = static_cast<std::uint64_t>(node.Mark().line) + 1};
  }

  const std::string& file_;
  std::size_t count_ = 0;
};

}  // namespace

nlohmann::json infragraph_values(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    try {
      return nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
      throw Error(ErrorCode::bad_input, {.file = file, .byte_offset = error.byte}, "this is no JSON",
                  "a description of InfraGraph");
    } catch (const nlohmann::json::out_of_range&) {
      throw Error(ErrorCode::bad_input, {.file = file}, "a number that no double can hold",
                  "a description of InfraGraph");
    }
  }
  try {
    return YamlValues(file).convert(YAML::Load(std::string(text)), 0);
  } catch (const YAML::Exception& error) {
    throw Error(ErrorCode::bad_input,
                {.file = file, .line = static_cast<std::uint64_t>(std::max(error.mark.line, 0)) + 1},
                fmt::format("this is no YAML ({})", cited(error.msg)), "a description of InfraGraph");
  }
}

}  // namespace orrery::graphfile
