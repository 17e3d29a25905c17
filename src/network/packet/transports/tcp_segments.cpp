#include "tcp_segments.hpp"

#include <algorithm>

namespace orrery::network {

std::uint64_t TcpSegments::append(std::uint32_t length, Time now) {
  if (end_ - begin_ == ring_.size()) grow();
  TcpSegment segment;
  segment.sent = now;
  segment.first = static_cast<std::uint32_t>(sent_end_);
  segment.length = static_cast<std::uint16_t>(length);
  at(end_) = segment;
  sent_end_ += length;
  return end_++;
}

void TcpSegments::grow() {
  std::vector<TcpSegment> larger(ring_.empty() ? 4 : 2 * ring_.size());
  for (std::uint64_t number = begin_; number < end_; ++number) larger[number & (larger.size() - 1)] = at(number);
  ring_ = std::move(larger);
}

void TcpSegments::shrink() {
  if (empty() && ring_.size() > kept_when_idle) ring_ = {};
}

void TcpSegments::repeat(std::uint64_t number) {
  TcpSegment& segment = at(number);
  if (segment.is_again) return;
  segment.is_again = true;
  again_ += segment.length;
  if (segment.is_lost && !segment.is_sacked) --num_todo_;
}

std::optional<std::uint64_t> TcpSegments::first_lost() {
  if (num_todo_ == 0) return {};
  for (todo_ = std::max(todo_, begin_); todo_ < end_; ++todo_)
    if (const TcpSegment& segment = at(todo_); segment.is_lost && !segment.is_again && !segment.is_sacked) return todo_;
  return {};
}

std::optional<std::uint64_t> TcpSegments::first_unknown() {
  for (unknown_ = std::max(unknown_, begin_); unknown_ < end_; ++unknown_)
    if (const TcpSegment& segment = at(unknown_); !segment.is_again && !segment.is_sacked) return unknown_;
  return {};
}

/// Returns the first segment that begins at a byte or behind it. No segment is longer than the MSS, so that none before
/// the one with which the search begins is meant.
std::uint64_t TcpSegments::find(std::uint64_t byte) const {
  if (byte <= una_) return begin_;
  std::uint64_t low = std::min(begin_ + (byte - una_) / mss_, end_);
  if (low == end_ || first_byte(low) >= byte) return low;
  std::uint64_t step = 1;
  while (low + step < end_ && first_byte(low + step) < byte) {
    low += step;
    step *= 2;
  }
  std::uint64_t high = std::min(low + step, end_);
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (first_byte(middle) < byte ? low : high) = middle;
  }
  return high;
}

/// Keeps the last three segments that have come.
void TcpSegments::note_top(std::uint64_t number) {
  if (num_top_ == top_.size() && number < top_.back()) return;
  std::uint32_t place = num_top_ < top_.size() ? num_top_++ : num_top_ - 1;
  for (; place > 0 && top_[place - 1] < number; --place) top_[place] = top_[place - 1];
  top_[place] = number;
}

std::uint64_t TcpSegments::take_block(std::uint64_t begin, std::uint64_t end) {
  std::uint64_t added = 0;
  begin = std::max(begin, una_);
  end = std::min(end, sent_end_);
  while (begin < end) {
    const auto& known = sacked_.ranges();
    const auto next = std::ranges::upper_bound(known, begin, {}, &ByteRanges::Range::first);
    if (next != known.begin() && std::prev(next)->second > begin) {
      begin = std::prev(next)->second;
      continue;
    }
    const std::uint64_t limit = next == known.end() ? end : std::min(end, next->first);
    std::uint64_t number = find(begin);
    const std::uint64_t from = number < end_ ? first_byte(number) : limit;
    std::uint64_t to = from;
    for (; number < end_ && to + at(number).length <= limit; ++number) {
      TcpSegment& segment = at(number);
      if (segment.is_lost) {
        segment.is_lost = false;
        lost_ -= segment.length;
        if (!segment.is_again) --num_todo_;
      }
      segment.is_sacked = true;
      to += segment.length;
      note_top(number);
    }
    sacked_.add(from, to);
    if (to > from) added += to - from;
    begin = limit;
  }
  return added;
}

void TcpSegments::mark_lost(std::uint64_t number) {
  TcpSegment& segment = at(number);
  if (segment.is_lost) return;
  segment.is_lost = true;
  lost_ += segment.length;
  if (segment.is_again) return;
  ++num_todo_;
  todo_ = std::min(todo_, number);
}

void TcpSegments::find_lost() {
  if (num_top_ < top_.size()) return;
  for (examined_ = std::max(examined_, begin_); examined_ < top_.back(); ++examined_)
    if (!at(examined_).is_sacked) mark_lost(examined_);
}

bool TcpSegments::is_lost_from(std::uint64_t byte) const {
  if (num_top_ == 0 || byte >= first_byte(top_.front())) return false;
  // Lost segments come before all others that have not come, unless a time-out has taken all for lost.
  return at(find(byte)).is_lost;
}

void TcpSegments::lose_head() {
  TcpSegment& head = at(begin_);
  if (head.is_lost) return;
  if (head.is_sacked) {
    head.is_sacked = false;
    sacked_.erase(una_, una_ + head.length);
  }
  mark_lost(begin_);
}

void TcpSegments::lose_all() {
  lost_ = again_ = num_todo_ = 0;
  for (std::uint64_t number = begin_; number < end_; ++number) {
    TcpSegment& segment = at(number);
    segment.is_again = false;
    segment.sent = TcpSegment::not_recorded;
    if (segment.is_sacked) continue;
    segment.is_lost = true;
    lost_ += segment.length;
    ++num_todo_;
  }
  todo_ = unknown_ = begin_;
}

TcpSegments::Covered TcpSegments::acknowledge(std::uint64_t byte) {
  Covered covered;
  const std::uint64_t whole = (byte - una_) / mss_;
  for (std::uint64_t first = una_; begin_ < end_ && first < byte; ++begin_) {
    const TcpSegment& segment = at(begin_);
    const std::uint64_t last = first + segment.length;
    if (!segment.is_sacked) covered.delivered += segment.length;
    if (segment.is_again) {
      again_ -= segment.length;
      const std::uint64_t behind = byte - std::min(last, byte);
      if (!segment.is_sacked && last <= byte && behind % mss_ == 0 && behind / mss_ < whole)
        covered.has_repeated = true;
    }
    if (segment.is_lost) {
      lost_ -= segment.length;
      if (!segment.is_again) --num_todo_;
    }
    if (covered.sent == TcpSegment::not_recorded && segment.sent != TcpSegment::not_recorded) {
      covered.sent = segment.sent;
      covered.is_sent_once = !segment.is_again;
    }
    first = last;
  }
  if (!sacked_.empty()) sacked_.erase(0, byte);
  una_ = byte;
  sent_end_ = std::max(sent_end_, byte);
  while (num_top_ > 0 && top_[num_top_ - 1] < begin_) --num_top_;
  return covered;
}

bool TcpSegments::has_repeated_end(std::uint64_t byte) const {
  for (std::uint64_t number = begin_; number < std::min(begin_ + 3, end_); ++number) {
    const TcpSegment& segment = at(number);
    if (segment.is_again && !segment.is_sacked && first_byte(number) + segment.length == byte) return true;
  }
  return false;
}

void TcpSegments::serialize(Archive& archive) {
  archive(ring_, begin_, end_, una_, sent_end_, sacked_, lost_, again_, num_todo_, todo_, unknown_, examined_, top_,
          num_top_);
}

}  // namespace orrery::network
