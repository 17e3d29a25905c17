#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

/// Chooses the entropy of each packet of a flow from 64 values. Draws belong to the seed, the flow and their count.
class Entropies {
 public:
  static constexpr std::uint32_t count = 64;
  enum class Feedback : std::uint8_t { good, mark, loss, time_out };

  Entropies(Spraying spraying, std::uint64_t key);

  /// Returns the entropy of the next packet.
  std::uint16_t next();
  void feed_back(std::uint16_t entropy, Feedback feedback, Time now);
  void serialize(Archive& archive);

 private:
  struct Turn {
    std::uint32_t index = 0, order = 0;  ///< numbers whose exclusive or is the value
    std::uint32_t num_draws = 0;
  };

  /// The last few values that came back without a mark, each of which is used once (spraying `reps`).
  struct Ring {
    static constexpr std::uint32_t size = 8;

    std::uint16_t values[size] = {};
    std::uint32_t head = 0;        ///< place of the next value
    std::uint32_t num_unused = 0;  ///< values before the head that were not used
    std::uint32_t num_known = 0;
    /// After a time-out: the values are used in turn, used ones too, until a time.
    bool is_frozen = false;
    std::uint32_t next_frozen = 0;
    Time frozen_until = {};
    std::uint32_t to_explore = 0;  ///< values that are drawn after that
  };

  std::uint32_t draw();
  std::uint16_t next_of_ring();
  void feed_back_to_ring(std::uint16_t entropy, Feedback feedback, Time now);
  void step();
  std::uint16_t next_in_turn();
  std::uint16_t next_without_penalty();

  Spraying spraying_;
  std::uint64_t key_;
  Turn turn_;
  std::array<std::uint8_t, count> penalties_ = {};
  std::deque<std::uint16_t> clean_;  // values that came back without a mark (spraying `mixed`)
  Ring ring_;
};

}  // namespace orrery::network
