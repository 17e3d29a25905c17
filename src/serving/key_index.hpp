#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "orrery/base/mix.hpp"

namespace orrery::serving {

/// A hash table from keys to blocks, with as many places as it needs from the start. All functions cost O(1).
class KeyIndex {
 public:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  /// `most`: the most keys that it holds.
  explicit KeyIndex(std::uint32_t most) : entries_(most == 0 ? 1 : std::bit_ceil(std::size_t{most} * 2)) {}

  bool find(std::uint64_t key, std::uint32_t& value) const {
    for (std::size_t i = home(key); entries_[i].key != none; i = after(i))
      if (entries_[i].key == key) {
        value = entries_[i].value;
        return true;
      }
    return false;
  }
  /// Adds a key unless it is there.
  bool insert(std::uint64_t key, std::uint32_t value) {
    std::size_t i = home(key);
    for (; entries_[i].key != none; i = after(i))
      if (entries_[i].key == key) return false;
    entries_[i] = {key, value};
    return true;
  }
  /// Removes a key that is there. Entries behind it move up, so that no search ends too early.
  void erase(std::uint64_t key) {
    std::size_t hole = home(key);
    while (entries_[hole].key != key) hole = after(hole);
    for (std::size_t i = after(hole); entries_[i].key != none; i = after(i)) {
      const std::size_t wanted = home(entries_[i].key);
      if (((i - wanted) & mask()) < ((i - hole) & mask())) continue;
      entries_[hole] = entries_[i];
      hole = i;
    }
    entries_[hole].key = none;
  }

 private:
  struct Entry {
    std::uint64_t key = none;
    std::uint32_t value = 0;
  };

  std::size_t mask() const { return entries_.size() - 1; }
  std::size_t home(std::uint64_t key) const { return mix(0, key) & mask(); }
  std::size_t after(std::size_t i) const { return (i + 1) & mask(); }

  std::vector<Entry> entries_;
};

}  // namespace orrery::serving
