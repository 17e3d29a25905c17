#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "byte_ranges.hpp"
#include "control.hpp"
#include "orrery/base/slots.hpp"
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
  std::uint64_t trims = 0;                         ///< packets of which only the header went on
  Time credit_wait;                                ///< free, with packets to send, and without credit for them
};

/// One end of a link: what leaves by it, and what has come in by it and is still in the node's buffer.
struct Port {
  struct Peer {
    std::uint32_t node = 0, port = 0;
  };
  /// How a port marks packets.
  struct Marking {
    MarkThresholds thresholds;
    bool is_on = false;
    std::uint64_t num_draws = 0;
  };
  /// What has come in and is in the buffer of a switch, in bytes.
  struct Ingress {
    std::int64_t bytes = 0;     ///< without what is in the headroom
    std::int64_t headroom = 0;  ///< in use
    std::int64_t headroom_size = 0;
    std::uint32_t shift = 0;  ///< the port may have 1 / 2^shift of the free shared buffer
    bool pauses_peer = false;
  };

  std::uint32_t node = 0, number = 0;
  Peer peer;
  std::uint64_t rate = 0;
  Time delay;
  Time free;                ///< when the packet under way has left
  bool end_is_due = false;  ///< an event will say when that is
  bool is_paused = false;   ///< by the peer, for all but pause frames
  bool is_down = false;
  PacketQueue frames, queue;  ///< pause frames; packets that pass through the node
  Marking marking;
  Ingress ingress;
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
  Known known_[2] = {};  // the last two sizes: mostly those of data and of acknowledgements
};

/// Names a flow: the number is unique among those of its source.
struct FlowId {
  std::uint32_t source = 0, destination = 0;  ///< nodes
  std::uint32_t number = 0;
};

/// A message under way, at its source.
struct Flow {
  /// The time of the last size at the last rate, which the next packet mostly has too.
  struct Known {
    std::uint64_t rate = 0;
    std::uint32_t size = 0;
    Time time;
  };

  /// The number of the timer that is not the control's.
  static constexpr std::uint32_t retransmission_timer = Control::most_timers;

  FlowId id;
  std::uint32_t ports = 0;  ///< source port | destination port << 16
  std::uint32_t slot = 0, receiver = no_slot;
  std::uint32_t port = 0;  ///< by which its packets leave
  std::uint64_t bytes = 0;
  std::uint64_t next = 0;       ///< the first byte that is to be sent
  bool has_sent_empty = false;  ///< the only packet of a message without bytes
  bool is_over = false;         ///< all bytes are acknowledged
  Time available;               ///< when its next packet may leave
  FlowRate rate;
  std::unique_ptr<Control> control;
  std::unique_ptr<Recovery> recovery;                   ///< if the flow sends single packets again, or has a time-out
  std::uint64_t timers[Control::most_timers + 1] = {};  ///< the number of the event that each waits for
  Known known;                                          ///< of the last packet

  bool has_more() const { return next < bytes || (bytes == 0 && !has_sent_empty) || sends_again(); }
  bool sends_again() const { return recovery && !recovery->missing.empty(); }
  /// Returns the first byte of the next packet: what is missing goes before what was never sent.
  std::uint64_t first_to_send() const { return sends_again() ? recovery->missing.first() : next; }
  /// Returns how many bytes are sent, and neither acknowledged nor known to be lost.
  std::uint64_t under_way() const {
    return next - rate.acknowledged - (recovery ? recovery->ahead.bytes() + recovery->missing.bytes() : 0);
  }
  /// Returns what a packet takes at the flow's rate.
  Time takes(std::uint32_t size, Time tick) {
    if (known.size != size || known.rate != rate.rate)
      known = {rate.rate, size, transmission_time(size, rate.rate, tick)};
    return known.time;
  }
  /// Returns whether the window holds the flow back.
  bool is_held(bool window_follows_rate) const {
    if (rate.window == 0) return false;
    std::uint64_t window = rate.window;
    if (window_follows_rate && rate.rate != rate.line_rate)
      window = std::max<std::uint64_t>(window * rate.rate / rate.line_rate, 1);
    return under_way() >= window;
  }
};

/// Flows in numbered slots, which keep their places in memory.
class FlowPool {
 public:
  /// Returns a new flow, which has its slot.
  Flow& add() {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(flows_.size()));
      flows_.push_back(std::make_unique<Flow>());
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    *flows_[slot] = {};
    flows_[slot]->slot = slot;
    return *flows_[slot];
  }
  Flow& operator[](std::uint32_t slot) { return *flows_[slot]; }
  const Flow& operator[](std::uint32_t slot) const { return *flows_[slot]; }
  void free(std::uint32_t slot) { free_.push_back(slot); }
  /// Returns how many slots there are, free ones too.
  std::size_t size() const { return flows_.size(); }

  /// Slots of flows of a checkpoint, by source and number: packets and timers from there know none.
  std::unordered_map<std::uint64_t, std::uint32_t> restored;
  std::uint64_t num_wakes = 0;  ///< events that have been scheduled to wake ports and flows

 private:
  std::vector<std::unique_ptr<Flow>> flows_;
  std::vector<std::uint32_t> free_;
};

/// The sending side of a host's port.
struct Nic {
  PacketQueue acknowledgements;
  std::vector<Flow*> flows;      ///< that are not over, or were not when the port last looked
  std::uint32_t num_unsent = 0;  ///< of these that have bytes to send
  std::uint32_t num_over = 0;    ///< of these that are over
  std::size_t last = 0;          ///< index of the flow that sent last
  Time wakes_at = Time::max();
  std::uint64_t wake = 0;   ///< number of the event that wakes it
  bool passes_next = true;  ///< a packet that passes through the host goes before the host's own
};

/// A message under way, at its destination.
struct Reception {
  std::uint32_t source = 0, flow = 0, destination = 0;
  bool is_over = false;
  std::uint64_t expected = 0;  ///< all bytes before it have come
  static constexpr std::uint64_t no_gap = ~std::uint64_t{0};
  std::uint64_t last_gap = no_gap;  ///< the byte that was missing when the receiver last complained
  Time next_complaint = Time::from_ps(-1);
  // With selective loss:
  std::uint64_t furthest = 0;               ///< the byte after the last one that has come
  std::uint64_t total = ~std::uint64_t{0};  ///< bytes of the message; known when its last packet has come
  ByteRanges ahead = {};                    ///< that have come, beyond the expected byte

  void serialize(Archive& archive) {
    archive(source, flow, destination, is_over, expected, last_gap, next_complaint, furthest, total, ahead);
  }
};

struct Receptions {
  Slots<Reception> pool;
  std::unordered_map<std::uint64_t, std::uint32_t> by_flow;      ///< slots by source and flow
  std::vector<std::pair<std::uint32_t, std::uint32_t>> to_save;  ///< hosts and slots, ascending, for a checkpoint
};

}  // namespace orrery::network
