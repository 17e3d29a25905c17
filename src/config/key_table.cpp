#include "key_table.hpp"

namespace orrery::config {

Section& Sections::at(std::string_view path) {
  if (const auto found = open_.find(path); found != open_.end()) return found->second;
  const auto dot = path.rfind('.');
  Section& parent = at(dot == std::string_view::npos ? std::string_view() : path.substr(0, dot));
  const std::string_view name = dot == std::string_view::npos ? path : path.substr(dot + 1);
  return open_.emplace(std::string(path), parent.section(name)).first->second;
}

void Sections::refuse_unknown() {
  for (auto& [path, section] : open_) section.refuse_unknown();
}

}  // namespace orrery::config
