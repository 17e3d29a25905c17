#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "byte_ranges.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/slots.hpp"
#include "orrery/base/time.hpp"
#include "packet/control.hpp"
#include "packet/packet.hpp"
#include "packet/ports/port.hpp"

namespace orrery::network {

/// A message under way, at its source.
struct Flow {
  /// The transmission time of the last packet. The next packet mostly has its size and its rate, too.
  struct Known {
    std::uint64_t rate = 0;
    std::uint32_t size = 0;
    Time time;
  };

  /// Number of the timer that does not belong to the control.
  static constexpr std::uint32_t retransmission_timer = Control::most_timers;

  FlowId id;
  std::uint32_t ports = 0;  ///< source port | destination port << 16
  std::uint32_t slot = 0, receiver = no_slot;
  std::uint32_t port = 0;  ///< number of the port by which its packets leave
  std::uint64_t bytes = 0;
  std::uint64_t next = 0;       ///< first byte that was never sent
  bool has_sent_empty = false;  ///< whether the only packet of a message without bytes was sent
  bool is_over = false;         ///< whether all bytes are acknowledged
  Time available;               ///< time from which its next packet may leave
  FlowRate rate;
  std::unique_ptr<Control> control;
  std::unique_ptr<Recovery> recovery;                   ///< null: neither selective loss nor a time-out
  std::uint64_t timers[Control::most_timers + 1] = {};  ///< number of the event that each timer waits for
  Known known;                                          ///< transmission time of the last packet

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

  /// Slots of the flows of a checkpoint, by source and number. Packets and timers of a checkpoint know no slots.
  std::unordered_map<std::uint64_t, std::uint32_t> restored;
  std::uint64_t num_wakes = 0;  ///< timers of ports and flows that were started

 private:
  std::vector<std::unique_ptr<Flow>> flows_;
  std::vector<std::uint32_t> free_;
};

/// The sending side of a host's port.
struct Nic {
  PacketQueue acknowledgements;
  std::vector<Flow*> flows;      ///< flows that were not over when the port last looked
  std::uint32_t num_unsent = 0;  ///< flows of the list that have bytes to send
  std::uint32_t num_over = 0;    ///< flows of the list that are over
  std::size_t last = 0;          ///< index of the flow that sent last
  Time wakes_at = Time::max();
  std::uint64_t wake = 0;   ///< number of the event that wakes the port
  bool passes_next = true;  ///< whether a packet that passes through the host goes before packets of the host's flows
};

/// A message under way, at its destination.
struct Reception {
  std::uint32_t source = 0, flow = 0, destination = 0;
  bool is_over = false;
  std::uint64_t expected = 0;  ///< first byte that has not come
  static constexpr std::uint64_t no_gap = ~std::uint64_t{0};
  std::uint64_t last_gap = no_gap;  ///< byte that was missing when the receiver last sent a negative acknowledgement
  Time next_complaint = Time::from_ps(-1);
  // With selective loss:
  std::uint64_t furthest = 0;               ///< end of the bytes that have come
  std::uint64_t total = ~std::uint64_t{0};  ///< bytes of the message, which its last packet tells
  ByteRanges ahead = {};                    ///< bytes that have come, beyond the expected byte

  void serialize(Archive& archive) {
    archive(source, flow, destination, is_over, expected, last_gap, next_complaint, furthest, total, ahead);
  }
};

struct Receptions {
  Slots<Reception> pool;
  std::unordered_map<std::uint64_t, std::uint32_t> by_flow;  ///< slots by source and number of the flow
};

/// An observer of the flows of RoCE: this class, which does nothing, or fast-forward.
class FlowObserver {
 public:
  virtual ~FlowObserver() = default;

  /// A flow of a host of this rank has begun.
  virtual void began(const Flow&) {}
  /// A flow is about to send a packet.
  virtual void sends(const Flow&) {}
  /// An acknowledgement is about to wait for a port.
  virtual void answers(const Port&, const Packet&) {}
  /// All bytes of a flow are acknowledged.
  virtual void ended(const Flow&) {}
};

/// The state of RoCE at the hosts of one rank, which its sending and its receiving side share.
struct RoceState {
  FlowPool flows;
  std::vector<Nic> nics;  ///< [ports of hosts]
  Receptions receptions;
  FlowObserver* observer = nullptr;  ///< never null after construction of the transport
};

}  // namespace orrery::network
