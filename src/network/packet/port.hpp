#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "control.hpp"
#include "orrery/network/packet_rules.hpp"
#include "packet.hpp"

namespace orrery::network {

/// What a port has done.
struct PortStatistics {
  std::uint64_t packets = 0, bytes = 0;  ///< sent
  Time busy;
  std::uint64_t marks = 0, drops = 0, pauses = 0;  ///< pauses: received
  std::uint64_t deepest_queue = 0;                 ///< bytes
  Time queueing;                                   ///< that packets waited, summed over packets
  std::uint32_t most_waiting = 0;                  ///< packets at a time
};

/// One end of a link: what leaves by it, and what has come in by it and is still in the node's buffer.
struct Port {
  std::uint32_t node = 0, number = 0;
  std::uint32_t peer = 0, peer_port = 0;
  std::uint64_t rate = 0;
  Time delay;

  // What leaves.
  Time free;                ///< when the packet under way has left
  bool end_is_due = false;  ///< an event will say when that is
  bool is_paused = false;   ///< by the peer, for all but pause frames
  bool is_down = false;
  PacketQueue frames, queue;  ///< pause frames; packets that pass through the node
  std::uint64_t egress = 0;   ///< bytes that wait
  std::uint32_t num_waiting = 0;
  MarkThresholds marks;
  bool has_marks = false;
  std::uint64_t num_draws = 0;

  // What has come in (a switch's only).
  std::int64_t ingress = 0, headroom_used = 0, headroom = 0;
  std::uint32_t shift = 0;
  bool pauses_peer = false;

  PortStatistics done;

  /// Returns what a packet takes.
  Time takes(std::uint32_t size, Time tick) {
    for (const Known& known : known_)
      if (known.size == size) return known.time;
    std::swap(known_[0], known_[1]);
    known_[0] = {size, transmission_time(size, rate, tick)};
    return known_[0].time;
  }

 private:
  struct Known {
    std::uint32_t size = 0;
    Time time;
  };
  Known known_[2];  // the last two sizes: mostly those of data and of acknowledgements
};

/// A message under way, at its source.
struct Flow {
  std::uint32_t number = 0, source = 0, destination = 0, ports = 0;
  std::uint32_t slot = 0, receiver = no_slot, port = 0;
  std::uint64_t bytes = 0;
  std::uint64_t next = 0;       ///< the first byte that is to be sent
  bool has_sent_empty = false;  ///< the only packet of a message without bytes
  bool is_over = false;         ///< all bytes are acknowledged
  Time available;               ///< when its next packet may leave
  FlowRate rate;
  std::unique_ptr<Control> control;
  std::uint64_t timers[Control::most_timers] = {};  ///< the number of the event that each waits for

  std::uint32_t last_size = 0;
  std::uint64_t known_rate = 0;
  std::uint32_t known_size = 0;
  Time known_time;

  bool has_more() const { return next < bytes || (bytes == 0 && !has_sent_empty); }
  /// Returns what a packet takes at the flow's rate.
  Time takes(std::uint32_t size, Time tick) {
    if (known_size != size || known_rate != rate.rate) {
      known_size = size;
      known_rate = rate.rate;
      known_time = transmission_time(size, rate.rate, tick);
    }
    return known_time;
  }
  /// Returns whether the window holds the flow back.
  bool is_held(bool window_follows_rate) const {
    if (rate.window == 0) return false;
    std::uint64_t window = rate.window;
    if (window_follows_rate && rate.rate != rate.line_rate)
      window = std::max<std::uint64_t>(window * rate.rate / rate.line_rate, 1);
    return next - rate.acknowledged >= window;
  }
};

/// The sending side of a host's port.
struct Nic {
  PacketQueue acknowledgements;
  std::vector<Flow*> flows;  ///< that are not over, or were not when the port last looked
  std::size_t last = 0;      ///< index of the flow that sent last
  Time wakes_at = Time::max();
  std::uint64_t wake = 0;   ///< number of the event that wakes it
  bool passes_next = true;  ///< a packet that passes through the host goes before the host's own
};

/// A message under way, at its destination.
struct Reception {
  std::uint32_t source = 0, flow = 0;
  std::uint64_t expected = 0;  ///< all bytes before it have come
  static constexpr std::uint64_t no_gap = ~std::uint64_t{0};
  std::uint64_t last_gap = no_gap;  ///< the byte that was missing when the receiver last complained
  Time next_complaint = Time::from_ps(-1);
  bool is_over = false;
};

}  // namespace orrery::network
