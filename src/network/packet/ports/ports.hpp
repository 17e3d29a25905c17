#pragma once

#include <cstdint>

#include "orrery/base/archive.hpp"
#include "packet/node_events.hpp"
#include "packet/packet.hpp"
#include "packet/packet_store.hpp"
#include "packet/packet_system.hpp"
#include "port_table.hpp"

namespace orrery::network {

class HostTransport;
class PortObserver;
class QueueDiscipline;

/// Lets ports send packets over the links between nodes (docs/packet-network.md). A packet causes one event for each
/// link, which says that the packet is at the next node. It is sent when the transmission begins. The end of a
/// transmission is an event only if something waits for it.
class Ports final : public PortTable {
 public:
  /// The arguments must outlive the ports.
  Ports(const PacketSystem& system, NodeEvents& events, PacketStore& packets);
  /// Sets who chooses the packets of switches and of hosts, and who watches. All of them must outlive the last event.
  void connect(QueueDiscipline& queues, HostTransport& hosts, PortObserver& observer);

  PortObserver& observer() const { return *observer_; }

  /// Begins the next transmissions of a port if it is free: one, or all that take less than half a tick and the first
  /// that takes longer.
  void kick(Port& port);
  /// Begins to send a packet by a port that is free.
  void transmit(Port& port, std::uint32_t slot);
  /// Puts a packet into the queue of a port, which sends it at once if it can.
  void enqueue(Port& port, std::uint32_t slot);
  std::uint32_t dequeue(Port& port);
  /// Takes the packet that came last out of a queue. O(length of the queue).
  std::uint32_t dequeue_last(Port& port);
  /// Loses a packet that has come by a port or is about to leave by it.
  void drop(Port& port, std::uint32_t slot);
  /// Sends a PFC frame.
  void send_frame(Port& port, Packet::Kind kind);
  /// Does what a PFC frame says that has come by a port.
  void obey(Port& port, std::uint32_t slot);
  void end_transmission(Port& port);
  /// Loses all packets that wait for a link, which fails. Their bytes stay counted in the buffer, as in ns-3.
  void fail_link(Port& port);

  /// Writes or reads the buffer of a node, and the state of a port.
  void serialize(std::uint32_t node, Archive& archive) { archive(buffer(node).used); }
  void serialize(Port& port, Archive& archive);

 private:
  void begin_next(Port& port);
  bool has_work(const Port& port) const;
  void expect_end(Port& port);
  void hand_over(Port& port, std::uint32_t slot, Time there);

  NodeEvents& events_;
  PacketStore& packets_;
  QueueDiscipline* queues_ = nullptr;
  HostTransport* hosts_ = nullptr;
  PortObserver* observer_ = nullptr;
};

}  // namespace orrery::network
