#pragma once

#include <cstdint>
#include <map>
#include <utility>

namespace orrery::gpu {

/// Values of ranges of bytes. V has `shifted(bytes)`, which returns the value of what follows that many bytes later in
/// the same range. Bytes that were never set have V().
template <class V>
class Intervals {
 public:
  /// Calls take(first, last, value) for each piece of [first, last), in ascending order, gaps included.
  template <class Take>
  void for_each(std::uint64_t first, std::uint64_t last, Take take) const {
    auto at = pieces_.upper_bound(first);
    if (at != pieces_.begin()) --at;
    while (first < last) {
      while (at != pieces_.end() && at->second.end <= first) ++at;
      if (at == pieces_.end() || at->first >= last) {
        take(first, last, V());
        return;
      }
      if (at->first > first) {
        take(first, at->first, V());
        first = at->first;
      }
      const std::uint64_t end = at->second.end < last ? at->second.end : last;
      take(first, end, at->second.value.shifted(first - at->first));
      first = end;
    }
  }
  void set(std::uint64_t first, std::uint64_t last, V value) {
    if (first >= last) return;
    split(first);
    split(last);
    pieces_.erase(pieces_.lower_bound(first), pieces_.lower_bound(last));
    pieces_.emplace(first, Piece{last, std::move(value)});
  }
  /// Calls change(value) for each piece of [first, last), which it may alter. Gaps become pieces.
  template <class Change>
  void change(std::uint64_t first, std::uint64_t last, Change change) {
    if (first >= last) return;
    split(first);
    split(last);
    for (auto at = pieces_.lower_bound(first); first < last; ++at) {
      if (at == pieces_.end() || at->first > first) {
        const std::uint64_t end = at == pieces_.end() || at->first > last ? last : at->first;
        at = pieces_.emplace(first, Piece{end, V()}).first;
      }
      change(at->second.value);
      first = at->second.end;
    }
  }

 private:
  struct Piece {
    std::uint64_t end = 0;
    V value;
  };

  void split(std::uint64_t where) {
    auto at = pieces_.lower_bound(where);
    if (at == pieces_.begin()) return;
    --at;
    if (at->second.end <= where) return;
    pieces_.emplace(where, Piece{at->second.end, at->second.value.shifted(where - at->first)});
    at->second.end = where;
  }

  std::map<std::uint64_t, Piece> pieces_;  ///< pieces by their first byte
};

}  // namespace orrery::gpu
