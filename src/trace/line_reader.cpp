#include "line_reader.hpp"

#include <algorithm>

namespace orrery::trace {
namespace {

constexpr std::size_t longest_line = std::size_t{1} << 20;
constexpr std::string_view blanks = " \t\r\f\v";

}  // namespace

bool LineReader::fill() {
  size_ = file_.read(piece_);
  at_ = 0;
  return size_ > 0;
}

bool LineReader::next() {
  line_.clear();
  if (at_ == size_ && !fill()) return false;
  ++number_;
  do {
    const auto* const begin = piece_.data() + at_;
    const auto* const end = std::find(begin, static_cast<const std::uint8_t*>(piece_.data() + size_), '\n');
    line_.append(reinterpret_cast<const char*>(begin), static_cast<std::size_t>(end - begin));
    at_ += static_cast<std::size_t>(end - begin);
    if (line_.size() > longest_line) fail("a line of more than 1 MiB", "shorter lines");
    if (at_ < size_) {
      ++at_;
      break;
    }
  } while (fill());
  if (line_.ends_with('\r')) line_.pop_back();
  return true;
}

Place LineReader::place() const {
  Place place = file_.place();
  place.line = number_;
  return place;
}

void LineReader::fail(std::string_view found, std::string_view expected, std::string_view remedy) const {
  throw Error(ErrorCode::bad_input, place(), found, expected, remedy);
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(blanks, end);
  }
  return words;
}

}  // namespace orrery::trace
