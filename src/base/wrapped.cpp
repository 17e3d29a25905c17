#include "orrery/base/wrapped.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace orrery {

std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
  constexpr std::string_view indent = "    ";
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && line.size() > indent.size() && line.size() + 1 + word.size() > columns) {
      lines.push_back(std::move(line));
      line = indent;
    }
    line += line.empty() || (line == indent) ? word : " " + word;
    at = end + 1;
  }
  lines.push_back(std::move(line));
  for (std::string& each : lines) std::ranges::replace(each, no_break, ' ');
  return lines;
}

}  // namespace orrery
