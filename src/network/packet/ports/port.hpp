#pragma once

#include <cstdint>
#include <utility>

#include "orrery/base/time.hpp"
#include "orrery/network/packet_rules.hpp"
#include "packet/packet.hpp"

namespace orrery::network {

/// Counts and times of one port.
struct PortStatistics {
  std::uint64_t packets = 0, bytes = 0;  ///< packets and bytes sent
  Time busy;
  std::uint64_t marks = 0, drops = 0, pauses = 0;  ///< ECN marks, lost packets, PFC pauses received
  std::uint64_t deepest_queue = 0;                 ///< bytes
  Time queueing;                                   ///< time in the queue, summed over packets
  std::uint32_t most_waiting = 0;                  ///< packets at a time
  std::uint64_t trims = 0;                         ///< packets cut down to their headers
  Time credit_wait;                                ///< time with packets to send and without credit for them
};

/// One end of a link: the packets that leave by it, and the buffer of those that came by it and are still in the node.
struct Port {
  struct Peer {
    std::uint32_t node = 0, port = 0;
  };
  /// ECN marks.
  struct Marking {
    MarkThresholds thresholds;
    bool is_on = false;
    std::uint64_t num_draws = 0;
  };
  /// Bytes in the buffer of a switch that came by this port.
  struct Ingress {
    std::int64_t bytes = 0;     ///< bytes outside the headroom
    std::int64_t headroom = 0;  ///< bytes in the headroom
    std::int64_t headroom_size = 0;
    std::uint32_t shift = 0;  ///< n: the port may fill 1 / 2^n of the free shared buffer
    bool pauses_peer = false;
  };

  std::uint32_t node = 0, number = 0;
  Peer peer;
  std::uint64_t rate = 0;
  Time delay;
  Time free;                ///< end of the last transmission
  bool end_is_due = false;  ///< whether an event comes at that time
  bool is_paused = false;   ///< whether the peer has paused everything except frames
  bool is_down = false;
  PacketQueue frames;  ///< packets that go before all others: PFC frames, with UEC control and trimmed packets
  PacketQueue queue;   ///< packets that pass through the node
  Marking marking;
  Ingress ingress;
  PortStatistics done;

  /// Returns the transmission time of a packet.
  Time takes(std::uint32_t size, const PacketRules& rules) {
    for (const Known& known : known_)
      if (known.size == size) return known.time;
    std::swap(known_[0], known_[1]);
    known_[0] = {size, transmission_time(size, rate, rules)};
    return known_[0].time;
  }

 private:
  struct Known {
    std::uint32_t size = 0;
    Time time;
  };
  Known known_[2] = {};  // times of the last two sizes, which are mostly data and acknowledgements
};

}  // namespace orrery::network
