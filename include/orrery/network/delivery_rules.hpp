#pragma once

#include <cstdint>
#include <optional>

#include "orrery/base/time.hpp"

namespace orrery::network {

/// Which of the next hops that are equally good a node takes for a data packet. Acknowledgements follow the hash of
/// their flow.
enum class PacketRouting : std::uint8_t {
  flow_hash,    ///< the hash of the flow says: all packets of a flow take one path
  packet_hash,  ///< the hash of the flow and of the packet's place in it says
  round_robin,  ///< each node takes its next hops in turn
  adaptive,     ///< the one with the fewest bytes that wait
  valiant,      ///< the flow's hash, on the way to the switch of a host that is drawn for the flow, and from there on
};

/// What a receiver does with packets that come before one that is missing.
enum class PacketLoss : std::uint8_t {
  go_back_n,  ///< it drops them, and the sender sends them again
  selective,  ///< it keeps them, and the sender sends again what is missing
};

/// After which time without news of a flow its sender sends again what is not acknowledged.
struct RetransmissionTimeout {
  enum class Kind : std::uint8_t { none, path, fixed };
  Kind kind = Kind::none;
  Time time = {};  ///< if it is fixed
  /// Round trips of a packet that is alone, if it follows from the path: that of IRN (Mittal et al., SIGCOMM 2018) is
  /// some 13 of them.
  static constexpr std::int64_t round_trips = 16;

  friend bool operator==(const RetransmissionTimeout&, const RetransmissionTimeout&) = default;
};

/// How packets get to their destination, and what happens if they do not.
struct DeliveryRules {
  PacketRouting routing = PacketRouting::flow_hash;
  PacketLoss loss = PacketLoss::go_back_n;
  std::optional<RetransmissionTimeout> timeout;  ///< none: `path` with selective loss, else no time-out

  bool chooses_hops() const { return routing != PacketRouting::flow_hash; }
  /// Returns whether packets of a flow can overtake each other.
  bool spreads_flows() const { return chooses_hops() && routing != PacketRouting::valiant; }
  RetransmissionTimeout effective_timeout() const {
    if (timeout) return *timeout;
    return {.kind =
                loss == PacketLoss::selective ? RetransmissionTimeout::Kind::path : RetransmissionTimeout::Kind::none};
  }
  /// Returns whether a sender may send again what its receiver has, so that the receiver must answer that.
  bool repeats() const {
    return loss == PacketLoss::selective || effective_timeout().kind != RetransmissionTimeout::Kind::none;
  }

  friend bool operator==(const DeliveryRules&, const DeliveryRules&) = default;
};

}  // namespace orrery::network
