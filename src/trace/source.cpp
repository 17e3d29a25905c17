#include "source.hpp"

namespace orrery::trace {
namespace {

constexpr std::size_t longest_shown_name = 80;

}  // namespace

std::string shown(std::string_view name) {
  std::string text(name.substr(0, longest_shown_name));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  if (name.size() > longest_shown_name) text += "...";
  return text;
}

}  // namespace orrery::trace
