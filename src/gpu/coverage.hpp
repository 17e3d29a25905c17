#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace orrery::gpu {

/// Which bytes of a buffer hold packets that can be seen: disjoint ranges, none of which touches another one.
class Coverage {
 public:
  /// Adds the bytes [begin, end). O(log ranges), amortised.
  void add(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    auto at = ranges_.upper_bound(begin);
    if (at != ranges_.begin() && std::prev(at)->second >= begin) {
      --at;
      begin = at->first;
      end = std::max(end, at->second);
    }
    while (at != ranges_.end() && at->first <= end) {
      end = std::max(end, at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace_hint(at, begin, end);
  }
  /// Returns whether all of [begin, end) is there.
  bool covers(std::uint64_t begin, std::uint64_t end) const {
    if (begin >= end) return true;
    const auto behind = ranges_.upper_bound(begin);
    return behind != ranges_.begin() && std::prev(behind)->second >= end;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin and end
};

}  // namespace orrery::gpu
