#pragma once

#include <cstdint>

#include "packet/node_services.hpp"
#include "packet/ports/queue_discipline.hpp"
#include "packet/reduction/reductions.hpp"
#include "packet/transports/host_transport.hpp"

namespace orrery::network {

/// Decides about each packet that comes to a node: the node is its destination, or the packet waits for its next port.
class PacketSwitching {
 public:
  /// The arguments must outlive it. `reductions`: null if no switch reduces.
  PacketSwitching(const NodeServices& services, QueueDiscipline& queues, HostTransport& hosts, Reductions* reductions)
      : services_(services), queues_(queues), hosts_(hosts), reductions_(reductions) {}

  /// Handles a packet that has come to a node by the port with this number.
  void arrive(std::uint32_t node, std::uint32_t number, std::uint32_t slot);
  /// Fails all ports of a node that belong to a link.
  void fail_link(std::uint32_t node, std::uint32_t link);

 private:
  NodeServices services_;
  QueueDiscipline& queues_;
  HostTransport& hosts_;
  Reductions* reductions_;
};

}  // namespace orrery::network
