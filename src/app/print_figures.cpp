#include "print_figures.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace orrery::app {

void print_figures(const nlohmann::ordered_json& figures, bool as_json) {
  if (as_json) {
    fmt::print("{}\n", figures.dump(2));
    return;
  }
  const nlohmann::ordered_json flat = figures.flatten();
  for (const auto& [key, item] : flat.items()) {
    std::string path = key.substr(1);
    std::replace(path.begin(), path.end(), '/', '.');
    fmt::print("{}: {}\n", path, item.is_string() ? item.get<std::string>() : item.dump());
  }
}

}  // namespace orrery::app
