#pragma once

#include <cstdint>

#include "line.hpp"

namespace orrery::collective {

/// One step of a place in a ring, in halving-doubling or in direct. It sends a message to each of its receivers at
/// once, waits for as many from those who send to it, reduces, and goes on.
struct Step {
  Bytes message;
  std::uint32_t first = 1;  ///< distances of the receivers, both included
  std::uint32_t last = 1;
  bool by_xor = false;  ///< place i sends to i xor distance; else to i + distance, and waits for i - distance
  Bytes reduced;        ///< its reduction is what follows the last message (docs/model.md, 6); 0 = none

  std::uint32_t count() const { return last - first + 1; }
};

/// The steps of a phase in a line of `size` places, each computed when asked for: O(1). Not for trees.
class Steps {
 public:
  Steps(const PhaseShape& shape, std::uint32_t size, const Rules& rules);

  std::uint64_t count() const { return count_; }
  Step at(std::uint64_t k) const;

 private:
  Step of_direct(std::uint64_t k) const;
  Step of_halving_doubling(std::uint64_t k) const;

  PhaseShape shape_;
  std::uint32_t size_;
  bool reduces_every_message_;
  std::uint64_t count_;
};

}  // namespace orrery::collective
