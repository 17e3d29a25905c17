#include "message_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "orrery/base/text.hpp"

namespace orrery::trace {
namespace {

constexpr std::size_t chunk = std::size_t{1} << 18;
/// Protocol buffers allow no larger message.
constexpr std::uint64_t largest_message = std::numeric_limits<std::int32_t>::max();

}  // namespace

MessageSource::MessageSource(TraceFile& file)
    : file_(file), buffer_(file.size() == 0 ? chunk : std::min<std::uint64_t>(file.size(), chunk)) {}

/// Makes `count` bytes available if there are as many. The buffer doubles only after it was filled, so a false length
/// cannot make it larger than twice the file.
bool MessageSource::provide(std::size_t count) {
  while (available() < count) {
    if (begin_ > 0) {
      std::ranges::copy(std::span(buffer_).subspan(begin_, available()), buffer_.begin());
      end_ = available();
      begin_ = 0;
    }
    if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
    const std::size_t got = file_.read(std::span(buffer_).subspan(end_));
    if (got == 0) return false;
    end_ += got;
  }
  return true;
}

std::optional<std::uint64_t> MessageSource::next_length() {
  if (!provide(1)) return std::nullopt;
  std::uint64_t length = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (!provide(1)) fail("the file is truncated: it ends within the length of a message", "another byte");
    const std::uint8_t byte = buffer_[begin_];
    ++begin_;
    ++position_;
    length |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return length;
  }
  fail("this is not the length of a message", "length-delimited Chakra messages");
}

bool MessageSource::holds_next() const {
  std::uint64_t length = 0;
  unsigned shift = 0;
  for (std::size_t at = begin_; at < end_ && shift < 35; ++at, shift += 7) {
    length |= std::uint64_t{buffer_[at] & 0x7fu} << shift;
    if (buffer_[at] < 0x80) return length < end_ - at;
  }
  return false;
}

std::optional<MessageSource::Message> MessageSource::next() {
  const auto length = next_length();
  if (!length) return std::nullopt;
  if (*length > largest_message)
    fail(fmt::format("a message of {}", counted(*length, "byte")),
         "length-delimited Chakra messages of less than 2 GiB");
  if (!provide(*length))
    fail(fmt::format("the file is truncated: a message of {} is cut off after {}", counted(*length, "byte"),
                     available()),
         "a whole message");
  const Message message{std::span(buffer_).subspan(begin_, *length), position_};
  begin_ += *length;
  position_ += *length;
  any_ = true;
  return message;
}

double MessageSource::remaining_per_given() const {
  if (file_.size() <= position_ || position_ == 0) return 0;
  return static_cast<double>(file_.size() - position_) / static_cast<double>(position_);
}

void MessageSource::fail(std::string_view found, std::string_view expected) const {
  Place place = file_.place();
  place.byte_offset = position_;
  throw Error(ErrorCode::bad_input, place, found, expected,
              any_ ? "" : "This is the first message: the file may be no Chakra execution trace at all.");
}

}  // namespace orrery::trace
