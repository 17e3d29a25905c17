#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/distribution.hpp"

namespace orrery {

/// For what a factor is drawn, and what it multiplies.
enum class DrawnPer : std::uint8_t {
  machine,     ///< once for the NPUs of a machine: the time of their compute nodes
  npu,         ///< once for an NPU: the time of its compute nodes
  step,        ///< for an NPU and iteration: the time of its compute nodes and of its host work
  node,        ///< for an NPU, node and iteration: the same
  collective,  ///< for a communicator and its n-th collective: the time from the last arrival on
  message,     ///< for two NPUs, a tag and an iteration: the time of a message between them
};

inline constexpr std::size_t num_drawn_per = 6;

struct Variation {
  DrawnPer per = DrawnPer::npu;
  std::uint32_t machine_size = 8;  ///< NPUs of a machine, which have consecutive numbers
  Distribution distribution;

  friend bool operator==(const Variation&, const Variation&) = default;
};

/// Which word is which in the key of a draw, besides the seed.
struct DrawKey {
  std::uint64_t first = 0, second = 0, third = 0;
};

/// Draws factors. A draw depends on the seed, the number of the entry and the key alone, so that it is the same on any
/// number of ranks. Factors of several entries for the same multiply.
class Variations {
 public:
  void add(Variation variation);
  std::span<const Variation> all() const { return all_; }
  bool has(DrawnPer per) const { return has_[static_cast<std::size_t>(per)]; }
  /// Returns the factor; 1 if nothing is drawn for this. `machine`: the first word is the number of an NPU. O(entries).
  double factor(DrawnPer per, const DrawKey& key) const;
  /// Returns a positive bound that no factor is below.
  double lowest(DrawnPer per) const;

  std::uint32_t seed = 1;

  friend bool operator==(const Variations& a, const Variations& b) { return a.all_ == b.all_; }

 private:
  std::vector<Variation> all_;
  std::array<bool, num_drawn_per> has_{};
};

}  // namespace orrery
