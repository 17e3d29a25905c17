#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/mix.hpp"

namespace orrery::fold {

/// Numbers distinct lists of words 0, 1, ... in the order in which they come first. Lists are compared, not only their
/// hashes.
class Interner {
 public:
  using Words = std::span<const std::uint32_t>;

  /// O(words).
  std::uint32_t of(Words list) {
    std::uint64_t hash = list.size();
    for (const auto word : list) hash = mix(hash, word);
    if (2 * size() >= slots_.size()) grow();
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != none; at = (at + 1) & (slots_.size() - 1))
      if (hashes_[slots_[at]] == hash && std::ranges::equal(list, (*this)[slots_[at]])) return slots_[at];
    const auto next = static_cast<std::uint32_t>(size());
    slots_[at] = next;
    hashes_.push_back(hash);
    words_.insert(words_.end(), list.begin(), list.end());
    ends_.push_back(words_.size());
    return next;
  }
  std::size_t size() const { return ends_.size() - 1; }
  Words operator[](std::uint32_t i) const { return Words(words_).subspan(ends_[i], ends_[i + 1] - ends_[i]); }

 private:
  static constexpr std::uint32_t none = ~0U;
  static constexpr std::size_t least_slots = 16;

  /// Makes room for as many lists again. The number of slots is a power of two, of which at most half are taken.
  void grow() {
    slots_.assign(std::max(least_slots, 2 * slots_.size()), none);
    for (std::uint32_t i = 0; i < size(); ++i) {
      std::size_t at = hashes_[i] & (slots_.size() - 1);
      while (slots_[at] != none) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = i;
    }
  }

  std::vector<std::uint32_t> words_;
  std::vector<std::size_t> ends_ = {0};
  std::vector<std::uint64_t> hashes_;  // [lists]
  std::vector<std::uint32_t> slots_;   // a hash table with linear probing of the numbers of lists
};

}  // namespace orrery::fold
