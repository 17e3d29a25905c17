#pragma once

#include <cstdint>

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
  /// An event has come that the user has scheduled for a node.
  virtual void wake(const pdes::Event& event) = 0;

 protected:
  ~PacketUser() = default;
};

}  // namespace orrery::network
