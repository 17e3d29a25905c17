#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"

namespace orrery {

/// Counts that go down to 0, nearly all of them small: half a byte each, and 8 bytes more for one that does not fit.
class Countdowns {
 public:
  /// Sets the counts of each i below `size` to `count(i)`, which is 1 or more.
  template <class Count>
  void restart(std::uint32_t size, Count count) {
    left_.resize((size + 1) / 2);
    wide_.clear();
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t from = count(i);
      const std::uint32_t half = std::min(from, wide) << shift_of(i);
      left_[i / 2] = static_cast<std::uint8_t>(i % 2 == 0 ? half : left_[i / 2] | half);
      if (from >= wide) wide_.emplace_back(i, from);
    }
  }
  /// Takes one from the count of i. Returns whether it is 0 now.
  bool count_down(std::uint32_t i) {
    std::uint8_t& both = left_[i / 2];
    const std::uint32_t left = both >> shift_of(i) & wide;
    const auto one_less = static_cast<std::uint8_t>(both - (1U << shift_of(i)));
    if (left != wide) {
      both = one_less;
      return left == 1;
    }
    const auto entry = std::ranges::lower_bound(wide_, i, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
    if (--entry->second < wide) both = one_less;
    return false;
  }

  void serialize(Archive& archive) { archive(left_, wide_); }

 private:
  static constexpr std::uint32_t wide = 0xf;  // the count is in `wide_`

  static std::uint32_t shift_of(std::uint32_t i) { return i % 2 * 4; }

  std::vector<std::uint8_t> left_;                             // [half of the counts] the even one in the lower half
  std::vector<std::pair<std::uint32_t, std::uint32_t>> wide_;  // by i
};

}  // namespace orrery
