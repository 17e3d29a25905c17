#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/error.hpp"

namespace orrery {

/// Where Countdowns keep the counts of items, of which most start at 1 or 2. Many Countdowns that start alike share it.
/// In each of them a count that starts at 1 needs no memory, one that starts at 2 a bit, one up to 16 half a byte, and
/// others four bytes.
class CountdownPlan {
 public:
  CountdownPlan() = default;
  /// The count of each i below `size` starts at `count(i)`. One that starts at 0 is never taken from. O(size).
  template <class Count>
  CountdownPlan(std::uint32_t size, Count count) : place_(size, none) {
    std::uint64_t end = 0;
    for (std::size_t kind = 0; kind < widths.size(); ++kind) {
      first_[kind] = static_cast<std::uint32_t>(end);
      for (std::uint32_t i = 0; i < size; ++i) {
        if (kind_of(count(i)) != kind) continue;
        place_[i] = static_cast<std::uint32_t>(end);
        start_.resize(end / bits + 1);
        start_[end / bits] |= (count(i) - 1) << end % bits;
        end += widths[kind];
      }
      ensure(end <= none, "counts of more than half a gigabyte");
    }
  }

 private:
  friend class Countdowns;

  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t bits = 32;                        // of a word
  static constexpr std::array<std::uint32_t, 3> widths{32, 4, 1};  // in bits; a count lies in one word

  static std::size_t kind_of(std::uint32_t count) {
    if (count <= 1) return widths.size();
    return count == 2 ? 2 : count <= 16 ? 1 : 0;
  }
  std::uint32_t mask_at(std::uint32_t place) const {
    if (place >= first_[2]) return 1;
    return place >= first_[1] ? 0xf : ~std::uint32_t{0};
  }

  std::vector<std::uint32_t> place_;      // [size] the first bit of the count; `none`: it starts at 1 or 0
  std::array<std::uint32_t, 3> first_{};  // [widths] the first place of a count of this width
  std::vector<std::uint32_t> start_;      // the counts as they start, each less 1
};

/// Counts that go down to 0. `plan` is the one that they were restarted with last.
class Countdowns {
 public:
  /// Sets all counts to their starts. O(bytes of the counts).
  void restart(const CountdownPlan& plan) { left_ = plan.start_; }
  /// Takes one from the count of i. Returns whether it is 0 now.
  bool count_down(const CountdownPlan& plan, std::uint32_t i) {
    const std::uint32_t place = plan.place_[i];
    if (place == CountdownPlan::none) return true;
    std::uint32_t& word = left_[place / CountdownPlan::bits];
    const std::uint32_t shift = place % CountdownPlan::bits;
    if ((word >> shift & plan.mask_at(place)) == 0) return true;
    word -= std::uint32_t{1} << shift;
    return false;
  }

  void serialize(Archive& archive) { archive(left_); }

 private:
  std::vector<std::uint32_t> left_;  // each count less 1, at its place
};

}  // namespace orrery
