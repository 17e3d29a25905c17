#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/archive.hpp"
#include "packet/node_events.hpp"
#include "packet/packet.hpp"
#include "packet/packet_system.hpp"
#include "packet/ports/port_table.hpp"

namespace orrery::network {

/// Finds the ports by which packets leave nodes. The hash of the flow chooses among equal routes, or each node does for
/// each data packet (docs/packet-network.md, Routes of packets). A choice depends on the state of its node alone.
class NextHops {
 public:
  /// The arguments must outlive it.
  NextHops(const PacketSystem& system, const NodeEvents& events, PortTable& ports);

  /// Returns the port by which a packet that passes through a node leaves it; null if no route leads on.
  Port* find(std::uint32_t node, Packet& packet) {
    return chooses_by_packet_ ? choose(node, packet) : by_flow(node, packet);
  }
  /// Returns the port that the hash of the packet's flow chooses; null if no route leads on.
  Port* by_flow(std::uint32_t node, const Packet& packet);
  /// Returns the port by which a host sends a flow. `ports` are the ports of the flow (FlowRequest). Throws Error
  /// (bad_input) as `require_way` does.
  Port& first(const FlowId& flow, std::uint32_t ports);
  /// Throws Error (bad_input) if failures have left no way between the hosts of a flow, which would time out for ever.
  void require_way(const FlowId& flow) const;
  /// Returns how many links the path of a flow has.
  std::uint32_t num_links(const FlowId& flow, std::uint32_t ports) const;
  /// Writes or reads the state of a node.
  void serialize(std::uint32_t node, Archive& archive) { archive(num_choices_[node]); }

 private:
  Port* choose(std::uint32_t node, Packet& packet);
  Port* detour(std::uint32_t node, Packet& packet);
  Port* least_queue(std::uint32_t node, std::span<const std::uint16_t> ports);

  const PacketSystem& system_;
  const NodeEvents& events_;
  PortTable& ports_;
  bool chooses_by_packet_;
  std::vector<std::uint64_t> num_choices_;  // [nodes] choices in turn or by a draw
};

}  // namespace orrery::network
