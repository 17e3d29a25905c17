#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "interner.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::fold {

/// Lists that several ranks have numbered, numbered for all of them.
struct SharedNumbers {
  Interner all;                       ///< the same on all ranks: by rank, then in the order in which each numbered them
  std::vector<std::uint32_t> of_own;  ///< [lists of this rank] number in `all`
};

/// Numbers the lists of all ranks alike. Collective. O(words of all ranks).
inline SharedNumbers share_numbers(Interner mine, parallel::Communicator& world) {
  SharedNumbers result;
  for (std::uint32_t i = 0; i < mine.size(); ++i) result.of_own.push_back(i);
  if (world.size() == 1) {
    result.all = std::move(mine);
    return result;
  }
  std::vector<std::uint32_t> words;  // the length of each list, then its words
  for (std::uint32_t i = 0; i < mine.size(); ++i) {
    words.push_back(static_cast<std::uint32_t>(mine[i].size()));
    words.insert(words.end(), mine[i].begin(), mine[i].end());
  }
  const auto of_all = world.all_gather(std::span<const std::uint32_t>(words));
  for (std::size_t at = 0; at < of_all.size(); at += 1 + of_all[at])
    (void)result.all.of(Interner::Words(of_all).subspan(at + 1, of_all[at]));
  for (std::uint32_t i = 0; i < mine.size(); ++i) result.of_own[i] = result.all.of(mine[i]);
  return result;
}

}  // namespace orrery::fold
