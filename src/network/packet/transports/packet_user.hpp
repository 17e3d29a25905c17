#pragma once

#include <cstdint>

#include "orrery/base/last_arrival.hpp"
#include "orrery/base/time.hpp"
#include "orrery/pdes/event.hpp"
#include "packet/packet.hpp"

namespace orrery::network {

/// A message that a host is to send.
struct FlowRequest {
  static constexpr std::uint32_t any_connection = ~0U;

  FlowId id;
  std::uint64_t bytes = 0;
  std::uint32_t ports = 0;   ///< source port | destination port << 16
  std::uint64_t window = 0;  ///< bytes; 0: none
  Time round_trip;           ///< round trip of a packet that is alone
  /// TCP: the connection among those of its hosts; `any_connection`: the transport chooses it
  std::uint32_t connection = any_connection;
};

/// A host's part in an operation of a tree of switches that reduce. Operations of a communicator have numbers that all
/// its hosts know, and are carried out in the order of these.
struct ReductionRequest {
  std::uint32_t tree = 0, host = 0;  ///< tree of the network, and node
  std::uint64_t number = 0;
  std::uint64_t contributed = 0;  ///< bytes that the host contributes
  std::uint64_t bytes = 0;        ///< bytes of the result
  LastArrival last = {};          ///< last arrival at the host of what the operation depends on
};

/// The user of the network. All calls come while an event of the host is handled.
class PacketUser {
 public:
  /// All bytes of a flow are at its destination.
  virtual void received(const FlowId& flow) = 0;
  /// All acknowledgements of a flow are at its source.
  virtual void acknowledged(const FlowId& flow) = 0;
  /// The destination of a flow is told that all acknowledgements are at its source (PacketCompletion::acknowledged). It
  /// is told again if the last acknowledgement is repeated (PacketRules::tells_again).
  virtual void told_acknowledged(const FlowId& flow) = 0;
  /// All of the result of an operation is at a host. `last`: the last arrival of what it depends on.
  virtual void reduced(std::uint32_t tree, std::uint32_t host, std::uint64_t number, const LastArrival& last) = 0;
  /// An event has come that the user has scheduled for a node.
  virtual void wake(const pdes::Event& event) = 0;

 protected:
  ~PacketUser() = default;
};

}  // namespace orrery::network
