#pragma once

#include <concepts>
#include <cstdint>

#include "orrery/base/mix.hpp"

namespace orrery::campaign {

/// Returns a number above 0 and below 1 that depends on its key alone.
constexpr double unit_of(std::uint64_t key) { return (static_cast<double>(key >> 11U) + 0.5) * 0x1p-53; }

/// Draws that depend on their purpose only: each has a stream and one or two words.
class Draws {
 public:
  constexpr Draws(std::uint64_t seed, std::uint64_t replication) : key_(mix(seed, replication)) {}

  /// Returns the bits of a draw.
  template <std::convertible_to<std::uint64_t>... Words>
  constexpr std::uint64_t bits(std::uint64_t stream, Words... words) const {
    std::uint64_t key = mix(key_, stream);
    ((key = mix(key, static_cast<std::uint64_t>(words))), ...);
    return key;
  }
  /// Returns a number above 0 and below 1.
  template <std::convertible_to<std::uint64_t>... Words>
  constexpr double unit(std::uint64_t stream, Words... words) const {
    return unit_of(bits(stream, words...));
  }

 private:
  std::uint64_t key_;
};

/// The streams of draws of a campaign. A process f has the streams f, lives + f and detection + f.
namespace stream {
inline constexpr std::uint64_t lives = 40, detection = 60, bad = 90, repair = 91, selection = 92, restart = 93,
                               diagnosis = 94, pause = 95;
}
inline constexpr std::size_t most_processes = 30;

}  // namespace orrery::campaign
