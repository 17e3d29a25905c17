#pragma once

#include <cstdint>
#include <vector>

#include "packet/node_services.hpp"
#include "packet/ports/queue_discipline.hpp"
#include "packet/reduction/reductions.hpp"
#include "packet/transports/host_transport.hpp"

namespace orrery::network {

/// Decides about each packet that comes to a node: the node is its destination, or the packet waits for its next port.
class PacketSwitching {
 public:
  /// The arguments must outlive it. `reductions`: null if no switch reduces.
  PacketSwitching(const NodeServices& services, QueueDiscipline& queues, HostTransport& hosts, Reductions* reductions);

  /// Handles a packet that has come to a node by the port with this number.
  void arrive(std::uint32_t node, std::uint32_t number, std::uint32_t slot);
  /// Fails all ports of a node that belong to a link.
  void fail_link(std::uint32_t node, std::uint32_t link);

  /// Handles the end of a transmission of a port.
  void end_transmission(Port& port) {
    if (gathers_) [[unlikely]]
      return note_end(port);
    services_.ports.end_transmission(port);
  }
  /// Ends a time: packets that came at this time go to their queues, and ports whose transmissions ended send the next.
  void settle() {
    if (gathers_) [[unlikely]]
      handle_gathered();
  }

 private:
  /// A packet for a queue that may drop it. Of packets that come at one time, a hash of port and time says which is
  /// first. If it were the one with the lowest node, full queues would drop those of the highest nodes only.
  struct Arrived {
    std::uint64_t key = 0;
    Port* in = nullptr;
    Port* out = nullptr;
    std::uint32_t slot = 0;
  };

  // Rarely used, and apart from the path of packets that wait in the order in which they come.
  [[gnu::noinline]] void gather(Port& in, Port& out, std::uint32_t slot);
  [[gnu::noinline]] void note_end(Port& port);
  [[gnu::noinline]] void handle_gathered();

  NodeServices services_;
  QueueDiscipline& queues_;
  HostTransport& hosts_;
  Reductions* reductions_;
  bool gathers_;  // whether packets of one time are put in order
  std::vector<Arrived> arrived_;
  std::vector<Port*> ended_;
};

}  // namespace orrery::network
