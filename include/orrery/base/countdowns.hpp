#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"

namespace orrery {

/// Counts that go down to 0, nearly all of them small: a byte each, and 8 more for one that does not fit.
class Countdowns {
 public:
  /// Sets the counts of each i below `size` to `count(i)`, which is 1 or more.
  template <class Count>
  void restart(std::uint32_t size, Count count) {
    left_.resize(size);
    wide_.clear();
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t from = count(i);
      left_[i] = static_cast<std::uint8_t>(std::min(from, wide));
      if (from >= wide) wide_.emplace_back(i, from);
    }
  }
  /// Takes one from the count of i. Returns whether it is 0 now.
  bool count_down(std::uint32_t i) {
    if (left_[i] != wide) return --left_[i] == 0;
    const auto entry = std::ranges::lower_bound(wide_, i, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
    if (--entry->second < wide) left_[i] = wide - 1;
    return false;
  }

  void serialize(Archive& archive) { archive(left_, wide_); }

 private:
  static constexpr std::uint32_t wide = 0xff;  // the count is in `wide_`

  std::vector<std::uint8_t> left_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> wide_;  // by i
};

}  // namespace orrery
