#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "orrery/base/archive.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

/// Chooses the entropy of each packet of a flow from 64 values. Draws belong to the seed, the flow and their count.
class Entropies {
 public:
  static constexpr std::uint32_t count = 64;
  enum class Feedback : std::uint8_t { good, mark, loss, time_out };

  Entropies(Spraying spraying, std::uint64_t key);

  /// Returns the entropy of the next packet. `sent`: packets that were sent before; `window`: in packets.
  std::uint16_t next(std::uint64_t sent, std::uint64_t window);
  void feed_back(std::uint16_t entropy, Feedback feedback);
  void serialize(Archive& archive);

 private:
  struct Turn {
    std::uint32_t index = 0, order = 0;  ///< numbers whose exclusive or is the value
    std::uint32_t last = 0;
    std::uint32_t num_draws = 0;
  };

  std::uint32_t draw();
  void step();
  std::uint16_t next_in_turn();
  std::uint16_t next_without_penalty();

  Spraying spraying_;
  std::uint64_t key_;
  Turn turn_;
  std::array<std::uint8_t, count> penalties_ = {};
  std::deque<std::uint16_t> clean_;  // values that came back without a mark
};

}  // namespace orrery::network
