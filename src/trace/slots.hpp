#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/base/mix.hpp"

namespace orrery::trace {

/// Numbers that values were given at their first use.
class Slots {
 public:
  /// The number of `value`, `next` if it has none, and whether it is new. O(1).
  std::pair<std::uint32_t, bool> of(std::uint64_t value, std::uint32_t next) {
    if ((size_ + 1) * 4 > entries_.size() * 3) grow();
    Entry& entry = find(value);
    if (entry.is_used) return {entry.number, false};
    entry = {value, next, true};
    ++size_;
    return {next, true};
  }

 private:
  struct Entry {
    std::uint64_t value;
    std::uint32_t number;
    bool is_used;
  };

  Entry& find(std::uint64_t value) {
    std::size_t at = mix(0, value) & (entries_.size() - 1);
    while (entries_[at].is_used && entries_[at].value != value) at = (at + 1) & (entries_.size() - 1);
    return entries_[at];
  }
  void grow() {
    const std::vector<Entry> before =
        std::exchange(entries_, std::vector<Entry>(entries_.empty() ? 16 : entries_.size() * 2));
    for (const Entry& entry : before)
      if (entry.is_used) find(entry.value) = entry;
  }

  std::vector<Entry> entries_;  ///< open addressing; their number is a power of two
  std::size_t size_ = 0;
};

}  // namespace orrery::trace
