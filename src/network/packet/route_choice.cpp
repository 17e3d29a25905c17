// How nodes choose a next hop for each data packet, where the hash of the flow does not choose for all of them
// (docs/packet-network.md, Routes of packets). A choice depends on the state of its node alone.
#include <limits>

#include "devices.hpp"
#include "orrery/base/mix.hpp"

namespace orrery::network {
namespace {

/// Adaptive nodes leave smaller packets to the hash of their flow, as switches that choose by queues do: they hardly
/// fill a queue.
constexpr std::uint32_t least_adaptive_size = 100;

/// Returns how many bytes a new packet of the port would wait for, with what is left of the packet under way.
std::uint64_t waiting_bytes(const Port& port, Time now) {
  if (now >= port.free) return port.queue.bytes;
  const auto left = static_cast<double>((port.free - now).ps()) * static_cast<double>(port.rate) / 8e12;
  return port.queue.bytes + static_cast<std::uint64_t>(left);
}

}  // namespace

/// Returns the port over which a packet that passes through a node leaves it; null if no way leads on.
Port* PacketDevices::next_hop(std::uint32_t node, Packet& packet) {
  if (packet.is_detouring) return detour(node, packet);
  const auto ports = system_.router.ports(node, packet.destination, now());
  if (ports.size() < 2 || !packet.is_data()) return next_port(node, packet);
  switch (system_.rules.routing) {
    case PacketRouting::packet_hash: {
      const std::uint32_t of_flow = PacketRouter::hash(node, {packet.source, packet.destination, packet.ports});
      return &port(node, ports[mix(of_flow, packet.sequence) % ports.size()]);
    }
    case PacketRouting::round_robin:
      return &port(node, ports[nodes_[node].num_choices++ % ports.size()]);
    case PacketRouting::adaptive:
      if (packet.size >= least_adaptive_size) return least_queue(node, ports);
      [[fallthrough]];
    case PacketRouting::valiant:
    case PacketRouting::flow_hash:
      break;
  }
  return next_port(node, packet);
}

/// Returns the next port of a packet on its way to the switch of a host that is drawn for its flow. There the detour
/// ends, or where no way leads to that host. The draw belongs to the seed and the flow.
Port* PacketDevices::detour(std::uint32_t node, Packet& packet) {
  const std::uint64_t ends = std::uint64_t{packet.source} << 32U | packet.destination;
  const std::uint64_t draw = mix(mix(mix(system_.rules.seed, ends), packet.ports), packet.flow);
  const PacketGraph& graph = system_.graph;
  const std::uint32_t host = graph.host(static_cast<std::uint32_t>(draw % graph.num_hosts()));
  const auto ports = host == node ? std::span<const std::uint16_t>() : system_.router.ports(node, host, now());
  if (ports.empty() || graph.ports(node)[ports[0]].peer == host) {
    packet.is_detouring = false;
    return next_hop(node, packet);
  }
  return &port(node, ports[PacketRouter::hash(node, {packet.source, host, packet.ports}) % ports.size()]);
}

/// Returns the port with the fewest bytes that wait. The draw among equal ones belongs to the seed, the node and the
/// count of its draws.
Port* PacketDevices::least_queue(std::uint32_t node, std::span<const std::uint16_t> ports) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint32_t num_equal = 0;
  for (const std::uint16_t number : ports) {
    const std::uint64_t waiting = waiting_bytes(port(node, number), now());
    num_equal = waiting < least ? 1 : num_equal + (waiting == least ? 1 : 0);
    least = std::min(least, waiting);
  }
  std::uint64_t chosen = 0;
  if (num_equal > 1) chosen = mix(mix(system_.rules.seed, node), nodes_[node].num_choices++) % num_equal;
  for (const std::uint16_t number : ports)
    if (Port& candidate = port(node, number); waiting_bytes(candidate, now()) == least && chosen-- == 0)
      return &candidate;
  return nullptr;  // not reached: one of the ports has the least
}

}  // namespace orrery::network
