#pragma once

#include <cstdint>

namespace orrery::network {

/// Records that a network of packets keeps in addition to the sums of its ports.
struct PacketRecording {
  static constexpr std::uint32_t most_queue_bins = 100'000;

  bool flows = false;            ///< whether each message, and each link that it passed, is recorded
  std::uint32_t queue_bins = 0;  ///< most intervals of time in which each queue is recorded; 0: queues are not recorded

  friend bool operator==(const PacketRecording&, const PacketRecording&) = default;
};

}  // namespace orrery::network
