#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
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
    const auto next = static_cast<std::uint32_t>(size());
    const auto [found, added] = heads_.try_emplace(hash, next);
    if (!added)
      for (std::uint32_t i = found->second; i != none; i = chain_[i])
        if (std::ranges::equal(list, (*this)[i])) return i;
    words_.insert(words_.end(), list.begin(), list.end());
    ends_.push_back(words_.size());
    chain_.push_back(added ? none : found->second);
    found->second = next;
    return next;
  }
  std::size_t size() const { return ends_.size() - 1; }
  Words operator[](std::uint32_t i) const { return Words(words_).subspan(ends_[i], ends_[i + 1] - ends_[i]); }

 private:
  static constexpr std::uint32_t none = ~0U;

  std::vector<std::uint32_t> words_;
  std::vector<std::size_t> ends_ = {0};
  std::vector<std::uint32_t> chain_;  // the list of the same hash that came before
  std::unordered_map<std::uint64_t, std::uint32_t> heads_;
};

}  // namespace orrery::fold
