#include "port_table.hpp"

#include <algorithm>

#include "switch_buffers.hpp"

namespace orrery::network {

PortTable::PortTable(const PacketSystem& system) : system_(system) {
  const SwitchBuffers buffers(system.graph, system.rules);
  for (std::uint32_t node = 0; node < system.graph.num_nodes(); ++node) add_node(node, buffers);
}

void PortTable::add_node(std::uint32_t node, const SwitchBuffers& buffers) {
  const PacketGraph& graph = system_.graph;
  Node& added = nodes_.emplace_back();
  added.first_port = ports_.size();
  added.first_host_port = num_host_ports_;
  added.buffer.size = buffers.shared_size(node);
  for (const PacketGraph::Port& end : graph.ports(node)) {
    const PacketGraph::Way out = graph.way_of(end);
    Port& port = ports_.emplace_back();
    port.node = node;
    port.number = static_cast<std::uint32_t>(ports_.size() - 1 - added.first_port);
    port.peer = {end.peer, end.peer_port};
    port.rate = out.rate;
    port.delay = out.delay;
    port.ingress.headroom_size = buffers.headroom(end);
    port.ingress.shift = buffers.share_shift(end);
    if (graph.node(node).is_host) {
      ++num_host_ports_;
    } else if (const MarkThresholds* const marks = system_.rules.marks_at(out.rate)) {
      port.marking = {.thresholds = *marks, .is_on = true};
    }
  }
}

std::size_t PortTable::num_waiting() const {
  std::size_t sum = 0;
  for (const Port& port : ports_) sum += port.frames.size + port.queue.size;
  return sum;
}

bool PortTable::has_failed_link() const { return std::ranges::any_of(ports_, &Port::is_down); }

}  // namespace orrery::network
