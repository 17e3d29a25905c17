#include "next_hops.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"

namespace orrery::network {
namespace {

/// Size from which adaptive nodes choose by queues. Smaller packets, which hardly fill a queue, take the port of their
/// flow's hash.
constexpr std::uint32_t least_adaptive_size = 100;

/// Returns for how many bytes a new packet of the port would wait, the rest of the packet under way included.
std::uint64_t waiting_bytes(const Port& port, Time now) {
  if (now >= port.free) return port.queue.bytes;
  const auto left = static_cast<double>((port.free - now).ps()) * static_cast<double>(port.rate) / 8e12;
  return port.queue.bytes + static_cast<std::uint64_t>(left);
}

}  // namespace

NextHops::NextHops(const PacketSystem& system, const NodeEvents& events, PortTable& ports)
    : system_(system),
      events_(events),
      ports_(ports),
      chooses_by_packet_(system.rules.chooses_hops()),
      num_choices_(system.graph.num_nodes()) {}

Port* NextHops::by_flow(std::uint32_t node, const Packet& packet) {
  const std::uint16_t number =
      system_.router.port(node, {packet.source, packet.destination, packet.ports}, events_.now());
  return number == PacketRouter::no_way ? nullptr : &ports_.at(node, number);
}

Port& NextHops::first(const FlowId& flow, std::uint32_t ports) {
  const std::uint16_t number = system_.router.port(flow.source, {flow.source, flow.destination, ports}, events_.now());
  if (number == PacketRouter::no_way) require_way(flow);
  return ports_.at(flow.source, number);
}

void NextHops::require_way(const FlowId& flow) const {
  const auto leads = [&](std::uint32_t from, std::uint32_t to) {
    return !system_.router.ports(from, to, events_.now()).empty();
  };
  if (leads(flow.source, flow.destination) && leads(flow.destination, flow.source)) return;
  throw Error(
      ErrorCode::bad_input,
      fmt::format("host {} sends a message to host {}, and failed links have left no way between them at {} ns; "
                  "expected a way between hosts that talk to each other",
                  flow.source, flow.destination, events_.now().ps() / 1000));
}

std::uint32_t NextHops::num_links(const FlowId& flow, std::uint32_t ports) const {
  std::uint32_t count = 0, node = flow.source;
  while (node != flow.destination && count <= system_.graph.num_nodes()) {
    const std::uint16_t number = system_.router.port(node, {flow.source, flow.destination, ports}, events_.now());
    if (number == PacketRouter::no_way) break;
    node = system_.graph.ports(node)[number].peer;
    ++count;
  }
  return count;
}

/// Returns the port that the routing by packets chooses; null if no route leads on.
Port* NextHops::choose(std::uint32_t node, Packet& packet) {
  if (packet.is_detouring) return detour(node, packet);
  const auto ports = system_.router.ports(node, packet.destination, events_.now());
  if (ports.size() < 2 || !packet.is_data()) return by_flow(node, packet);
  switch (system_.rules.routing) {
    case PacketRouting::packet_hash: {
      const std::uint32_t of_flow = PacketRouter::hash(node, {packet.source, packet.destination, packet.ports});
      return &ports_.at(node, ports[mix(of_flow, packet.sequence) % ports.size()]);
    }
    case PacketRouting::round_robin:
      return &ports_.at(node, ports[num_choices_[node]++ % ports.size()]);
    case PacketRouting::adaptive:
      if (packet.size >= least_adaptive_size) return least_queue(node, ports);
      [[fallthrough]];
    case PacketRouting::valiant:
    case PacketRouting::flow_hash:
      break;
  }
  return by_flow(node, packet);
}

/// Returns the next port of a packet on its way to the switch of a host that is drawn for its flow. The detour ends at
/// that switch, or at a node from which no way leads to the host. The draw belongs to the seed and the flow.
Port* NextHops::detour(std::uint32_t node, Packet& packet) {
  const std::uint64_t ends = std::uint64_t{packet.source} << 32U | packet.destination;
  const std::uint64_t draw = mix(mix(mix(system_.rules.seed, ends), packet.ports), packet.flow);
  const PacketGraph& graph = system_.graph;
  const std::uint32_t host = graph.host(static_cast<std::uint32_t>(draw % graph.num_hosts()));
  const auto ports = host == node ? std::span<const std::uint16_t>() : system_.router.ports(node, host, events_.now());
  if (ports.empty() || graph.ports(node)[ports[0]].peer == host) {
    packet.is_detouring = false;
    return choose(node, packet);
  }
  return &ports_.at(node, ports[PacketRouter::hash(node, {packet.source, host, packet.ports}) % ports.size()]);
}

/// Returns the port with the fewest bytes that wait. The draw among equal ports belongs to the seed, the node and the
/// count of the node's draws.
Port* NextHops::least_queue(std::uint32_t node, std::span<const std::uint16_t> ports) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint32_t num_equal = 0;
  for (const std::uint16_t number : ports) {
    const std::uint64_t waiting = waiting_bytes(ports_.at(node, number), events_.now());
    num_equal = waiting < least ? 1 : num_equal + (waiting == least ? 1 : 0);
    least = std::min(least, waiting);
  }
  std::uint64_t chosen = 0;
  if (num_equal > 1) chosen = mix(mix(system_.rules.seed, node), num_choices_[node]++) % num_equal;
  for (const std::uint16_t number : ports)
    if (Port& candidate = ports_.at(node, number); waiting_bytes(candidate, events_.now()) == least && chosen-- == 0)
      return &candidate;
  return nullptr;  // not reached: one of the ports has the least
}

}  // namespace orrery::network
