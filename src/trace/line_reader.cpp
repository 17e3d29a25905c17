#include "line_reader.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::trace {
namespace {

constexpr std::string_view separators = " \t\r\f\v";

}  // namespace

bool LineReader::next() {
  const auto line = lines_.next();
  line_ = line.value_or(std::string_view());
  return line.has_value();
}

void LineReader::fail(std::string_view found, std::string_view expected, std::string_view remedy) const {
  throw Error(ErrorCode::bad_input, lines_.place(), found, expected, remedy);
}

std::vector<std::string_view> words_in(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(separators); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(separators, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(separators, end);
  }
  return words;
}

}  // namespace orrery::trace
