#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"

namespace orrery::network {

/// A set of bytes of a message, as ranges that neither touch nor overlap, ascending. Every operation takes the time of
/// a search, and of moving the ranges behind the place.
class ByteRanges {
 public:
  using Range = std::pair<std::uint64_t, std::uint64_t>;  ///< first byte, and the byte after the last one

  bool empty() const { return ranges_.empty(); }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t first() const { return ranges_.front().first; }
  const std::vector<Range>& ranges() const { return ranges_; }

  /// Returns whether one range has all of these bytes.
  bool contains(std::uint64_t begin, std::uint64_t end) const {
    const auto next = std::ranges::upper_bound(ranges_, begin, {}, &Range::first);
    return next != ranges_.begin() && std::prev(next)->second >= end;
  }

  void add(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    const auto first = std::ranges::lower_bound(ranges_, begin, {}, &Range::second);
    auto last = first;
    for (; last != ranges_.end() && last->first <= end; ++last) {
      begin = std::min(begin, last->first);
      end = std::max(end, last->second);
      bytes_ -= last->second - last->first;
    }
    bytes_ += end - begin;
    if (first == last) {
      ranges_.insert(first, {begin, end});
      return;
    }
    *first = {begin, end};
    ranges_.erase(first + 1, last);
  }

  void erase(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    const auto first = std::ranges::upper_bound(ranges_, begin, {}, &Range::second);
    std::vector<Range> left;
    auto last = first;
    for (; last != ranges_.end() && last->first < end; ++last) {
      bytes_ -= std::min(end, last->second) - std::max(begin, last->first);
      if (last->first < begin) left.emplace_back(last->first, begin);
      if (last->second > end) left.emplace_back(end, last->second);
    }
    if (first == last) return;
    const auto at = ranges_.erase(first, last);
    ranges_.insert(at, left.begin(), left.end());
  }

  /// Takes out the range that begins with this byte. Returns the byte after it; the given byte if there is no such
  /// range.
  std::uint64_t take_from(std::uint64_t begin) {
    if (ranges_.empty() || ranges_.front().first != begin) return begin;
    const std::uint64_t end = ranges_.front().second;
    erase(begin, end);
    return end;
  }

  void serialize(Archive& archive) { archive(ranges_, bytes_); }

 private:
  std::vector<Range> ranges_;
  std::uint64_t bytes_ = 0;
};

/// The losses that the sender of a message knows of.
struct Recovery {
  ByteRanges ahead;            ///< bytes that the receiver has, beyond the first byte that it lacks
  ByteRanges missing;          ///< bytes to be sent again
  std::uint64_t examined = 0;  ///< first byte of which the sender does not know whether it has come
  Time news;  ///< time of the last acknowledgement of new bytes, or of sending when nothing was under way
  std::uint32_t num_timeouts = 0;  ///< since then

  void serialize(Archive& archive) { archive(ahead, missing, examined, news, num_timeouts); }
};

}  // namespace orrery::network
