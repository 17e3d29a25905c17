#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/pdes/event.hpp"
#include "packet/node_services.hpp"
#include "packet/port_observer.hpp"
#include "packet/ports/queue_discipline.hpp"
#include "packet_user.hpp"

namespace orrery::network {

/// Sends the messages of the hosts of one rank as packets, and receives them. A transport has the state of all flows,
/// or connections, at both ends: windows, timers and losses. Acknowledgements are packets of its own, which it puts
/// where `next` finds them. It knows ports, but neither switches nor links.
class HostTransport {
 public:
  virtual ~HostTransport() = default;

  /// Begins to send a message of a host of this rank.
  virtual void send(const FlowRequest& request) = 0;
  /// Returns the packet that a host sends next by a port that is free, which may be one that passes through the host;
  /// `no_slot` if none is to be sent now. The queues must allow the packet (QueueDiscipline::may_send). A transport
  /// that has something to send later kicks the port then (Ports::kick).
  virtual std::uint32_t next(Port& port) = 0;
  /// Returns whether a port of a host may have something to send, except for what waits in the queues of the port.
  virtual bool has_work(const Port& port) const = 0;
  /// Takes a packet of any kind that has come to its destination by a port.
  virtual void receive(Port& in, std::uint32_t slot) = 0;
  /// Handles an event of kind `port_timer` or `flow_timer`, which only the transport sends.
  virtual void expire(const pdes::Event& event) = 0;

  /// Returns how many packets wait at hosts, except for those in the queues of ports.
  virtual std::size_t num_waiting() const = 0;
  /// Returns what the connections that began at hosts of this rank have done, if the transport has any.
  virtual std::vector<ConnectionRecord> connections() const { return {}; }
  /// Returns an observer that skips repetitions of packets (docs/packet-network.md, *Long transfers*); null if none can
  /// be skipped. The function handles an event of a node. The transport must outlive the observer.
  virtual std::unique_ptr<PortObserver> make_fast_forward(std::function<void(const pdes::Event&)>) { return nullptr; }

  // For checkpoints.
  /// Finds which messages under way are for which host, for `serialize` to write. O(messages log messages).
  virtual void begin_saving() = 0;
  /// Returns what `unpack` needs to know of a pending timer; empty if that is nothing. It must contain no slots.
  virtual std::vector<std::byte> pack(const pdes::Event&) const { return {}; }
  /// Reads what `pack` has written.
  virtual void unpack(pdes::Event&, std::span<const std::byte>) {}
  /// Writes or reads the state of a host.
  virtual void serialize(std::uint32_t host, Archive& archive) = 0;
};

/// The transport of one rank and the queues that go with it.
struct TransportSide {
  std::unique_ptr<QueueDiscipline> queues;
  std::unique_ptr<HostTransport> hosts;
};

/// Returns the queues of the discipline of the rules; queues with credits if the rules say so.
std::unique_ptr<QueueDiscipline> make_queues(const NodeServices& services);

/// Makes a transport that takes the queues of the rules.
template <class Transport>
TransportSide make_transport(const NodeServices& services) {
  TransportSide made;
  made.queues = make_queues(services);
  made.hosts = std::make_unique<Transport>(services, *made.queues);
  return made;
}

}  // namespace orrery::network
