#pragma once

#include <cstdint>
#include <deque>

#include "entropies.hpp"
#include "nscc.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "packet/packet.hpp"
#include "uec_rules.hpp"

namespace orrery::network {

/// A timer of which at most one event is pending. An event that comes before the timer is due starts another one.
struct UecTimer {
  Time due = Time::max();
  Time pending = Time::max();  ///< time of the event; max(): there is none
  std::uint64_t number = 0;    ///< number of the event
};

/// The port of the host by which a flow leaves.
struct PortOfFlow {
  std::uint64_t number = 0;  ///< number among the host's ports
  std::uint64_t rate = 0;    ///< b/s
};

/// A message under way, at its source: which packets it may send, and when. It knows nothing of the network.
class UecSender {
 public:
  /// The fields of the next packet.
  struct Next {
    std::uint32_t number = 0;
    std::uint16_t entropy = 0;
    std::uint8_t flags = 0;
    std::uint32_t size = 0;  ///< bytes on the wire
    std::int32_t pull_target = 0;
  };

  UecSender(const UecRun& run, const FlowId& flow, PortOfFlow port, std::uint64_t bytes, Time now);

  const FlowId& flow() const { return flow_; }
  std::uint32_t port() const { return static_cast<std::uint32_t>(port_.number); }
  bool may_send() const;
  bool is_over() const { return progress_.first == progress_.count; }
  std::uint32_t num_packets() const { return progress_.count; }
  /// Takes the next packet: lost ones first. `num_active`: flows of the port that want to send.
  Next send(Time now, std::size_t num_active);

  /// Handles an answer of the receiver. The flow may be over then.
  void acknowledge(const Packet& packet, Time now);
  void reject(const Packet& packet, Time now);
  void grant(const Packet& packet);
  /// Sends what is overdue again. Returns whether anything is.
  bool time_out(Time now);
  /// Returns when the next packet is overdue; max() if none is out.
  Time overdue() const;
  /// Returns whether the receiver is to be asked for credit, at most once a round trip.
  bool wants_credit(Time now);
  std::int32_t pull_target(std::size_t num_active) const;
  /// Returns the number and entropy of a probe that is sent now.
  Next probe(Time now);

  bool waits = false;  ///< whether it waits for its turn at the port
  UecTimer retransmission, probing;
  void serialize(Archive& archive);

 private:
  /// A packet that was sent, from the first one on that is missing at the receiver as far as is known.
  struct Record {
    enum class State : std::uint32_t { out, lost, there };
    Time sent;
    State state = State::out;
    std::uint16_t resent = 0;
    std::uint8_t is_timed = 1;
    std::uint8_t entropy = 0;
  };
  struct Progress {
    std::uint64_t bytes = 0;
    std::uint32_t count = 0;            ///< packets
    std::uint32_t next = 0, first = 0;  ///< first packet that was never sent, and that is not acknowledged
    std::uint32_t num_lost = 0;         ///< packets to be sent again
    std::uint32_t unused = 0;
    std::int64_t lost_bytes = 0, received = 0, in_flight = 0;
  };
  /// Fast loss recovery of networks that drop packets (SLEEK).
  struct Recovery {
    std::uint32_t is_on = 0, end = 0, next = 0, probe = 0;
    Time probe_sent;
  };
  struct Credit {
    std::int64_t left = 0;
    std::int32_t granted = 0;
    std::int32_t is_speculative = 1;
    Time last_request = Time::from_ps(-1);
  };

  std::int64_t most_credit() const;
  std::uint32_t size_of(std::uint32_t number) const;
  Record* out(std::uint32_t number);
  void lose(std::uint32_t number);
  void find(std::uint32_t number);
  void take_positions(const Packet& packet);
  Time take_delay(const Packet& packet, Time now);
  void recover(const Packet& packet, Time now, Time delay);
  void stop_speculating();

  const UecRun* run_;
  FlowId flow_;
  PortOfFlow port_;
  Progress progress_;
  std::deque<Record> records_;
  Nscc nscc_;
  Entropies entropies_;
  Recovery recovery_;
  Credit credit_;
};

}  // namespace orrery::network
