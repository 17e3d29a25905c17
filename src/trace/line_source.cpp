#include "line_source.hpp"

#include <cstring>

#include "orrery/base/error.hpp"

namespace orrery::trace {
namespace {

constexpr std::size_t first_chunk = std::size_t{1} << 14;  // small files have no more
constexpr std::size_t line_chunk = std::size_t{1} << 18;
constexpr std::size_t longest_line = std::size_t{1} << 24;

}  // namespace

Place LineSource::place() const {
  Place place = file_.place();
  place.line = number_;
  place.npu = npu_;
  return place;
}

/// Returns whether there are more bytes in the buffer than before.
bool LineSource::read_more() {
  if (is_over_) return false;
  if (begin_ < end_) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const std::size_t chunk = buffer_.empty() ? first_chunk : line_chunk;
  if (buffer_.size() - end_ < chunk) buffer_.resize(buffer_.size() + chunk);
  const std::size_t room = buffer_.size() - end_;
  const std::size_t got = file_.read({reinterpret_cast<std::uint8_t*>(buffer_.data()) + end_, room});
  has_zero_ = has_zero_ || std::memchr(buffer_.data() + end_, '\0', got) != nullptr;
  end_ += got;
  is_over_ = got < room;
  return got > 0;
}

std::optional<std::string_view> LineSource::next() {
  if (begin_ == end_ && !read_more()) return {};
  ++number_;
  std::size_t searched = 0;
  for (;;) {
    const char* const from = buffer_.data() + begin_;
    const auto* const found = static_cast<const char*>(std::memchr(from + searched, '\n', end_ - begin_ - searched));
    searched = end_ - begin_;
    if (found == nullptr && searched > longest_line)
      throw Error(ErrorCode::bad_input, place(), "the line has more than 16 MiB", "shorter lines");
    if (found == nullptr && read_more()) continue;
    std::string_view line(buffer_.data() + begin_,
                          found == nullptr ? searched : static_cast<std::size_t>(found - from));
    begin_ += line.size() + (found == nullptr ? 0 : 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (has_zero_ && line.find('\0') != std::string_view::npos)
      throw Error(ErrorCode::bad_input, place(), "the line has a zero byte", "text");
    return line;
  }
}

}  // namespace orrery::trace
