#include "queue_limits.hpp"

namespace orrery::network {

QueueLimits::QueueLimits(const NodeServices& services) {
  const PacketGraph& graph = services.system.graph;
  for (std::uint32_t node = 0; node < graph.num_nodes(); ++node) {
    const std::uint64_t usual = graph.node(node).is_host ? none : services.system.rules.queue_limit();
    for (const PacketGraph::Port& port : graph.ports(node)) limits_.push_back(graph.way_of(port).queue.value_or(usual));
  }
}

}  // namespace orrery::network
