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
Port* PacketDevices::next_hop(std::uint32_t node, const Packet& packet) {
  const auto ports = system_.router.ports(node, packet.destination, now());
  if (ports.size() < 2 || !packet.is_data()) return next_port(node, packet);
  switch (system_.rules.routing) {
    case PacketRouting::packet_hash: {
      const std::uint32_t of_flow = PacketRouter::hash(node, {packet.source, packet.destination, packet.ports});
      return &port(node, ports[mix(of_flow, packet.sequence) % ports.size()]);
    }
    case PacketRouting::round_robin:
      return &port(node, ports[buffers_[node].num_choices++ % ports.size()]);
    case PacketRouting::adaptive:
      if (packet.size >= least_adaptive_size) return least_queue(node, ports);
      [[fallthrough]];
    case PacketRouting::flow_hash:
      break;
  }
  return next_port(node, packet);
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
  if (num_equal > 1) chosen = mix(mix(system_.rules.seed, node), buffers_[node].num_choices++) % num_equal;
  for (const std::uint16_t number : ports)
    if (Port& candidate = port(node, number); waiting_bytes(candidate, now()) == least && chosen-- == 0)
      return &candidate;
  return nullptr;  // not reached: one of the ports has the least
}

}  // namespace orrery::network
