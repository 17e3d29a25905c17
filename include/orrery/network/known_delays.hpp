#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"

namespace orrery::network {

/// The delays of messages at links of some kinds, for the sizes that came last: few sizes come again and again. The
/// links of one kind have the same delays.
class KnownDelays {
 public:
  struct Delays {
    Time holds, passes;
  };

  /// Adds a kind, with the next number from 0.
  void add_kind() { of_kind_.emplace_back(); }

  /// Returns the delays of a message of this size at a link of a kind. find() finds them if they are not known.
  template <class Find>
  Delays of(std::uint32_t kind, Bytes size, Find&& find) {
    Entry& entry = of_kind_[kind][size.count() * multiplier >> shift];
    if (entry.size != size) entry = {size, find()};
    return entry.delays;
  }

 private:
  struct Entry {
    Bytes size{~std::uint64_t{0}};
    Delays delays;
  };
  // The upper bits of the product differ for sizes that are powers of two, too.
  static constexpr std::uint64_t multiplier = 0x9e3779b97f4a7c15U;
  static constexpr unsigned bits = 4, shift = 64 - bits;

  std::vector<std::array<Entry, 1U << bits>> of_kind_;  // [kinds]
};

}  // namespace orrery::network
