#include "orrery/config/yaml_name.hpp"

#include <filesystem>

#include <fmt/format.h>

namespace orrery::config {

std::string yaml_name(const std::string& argument) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const bool is_there =
      fs::is_regular_file(argument, failure) || fs::is_regular_file(fs::path(argument) / "config.json", failure);
  const std::string name = is_there ? fs::absolute(argument).lexically_normal().string() : argument;
  std::string quoted;
  for (const char c : name) quoted.append(c == '"' || c == '\\' ? "\\" : "").push_back(c);
  return fmt::format("\"{}\"", quoted);
}

}  // namespace orrery::config
