#include "print_figures.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "orrery/base/utf8.hpp"

namespace orrery::show {

void print_figures(const nlohmann::ordered_json& figures, bool as_json) {
  if (as_json) {
    fmt::print("{}\n", printable(figures.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)));
    return;
  }
  const nlohmann::ordered_json flat = figures.flatten();
  for (const auto& [key, item] : flat.items()) {
    std::string path = key.substr(1);
    std::replace(path.begin(), path.end(), '/', '.');
    fmt::print("{}: {}\n", printable(path), printable(item.is_string() ? item.get<std::string>() : item.dump()));
  }
}

}  // namespace orrery::show
