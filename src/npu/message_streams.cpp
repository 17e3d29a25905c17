#include "orrery/npu/spec.hpp"

#include <map>
#include <tuple>

namespace orrery::npu {

using trace::NodeKind;

MessageStreams message_streams_of(const trace::Graph& graph) {
  MessageStreams streams;
  if (graph.num_peer_slots == 0) return streams;
  streams.of_node.resize(graph.num_nodes());
  std::map<std::tuple<NodeKind, std::uint32_t, std::uint64_t>, std::uint32_t> known;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if (node.kind != NodeKind::send && node.kind != NodeKind::receive) continue;
    const auto next = static_cast<std::uint32_t>(streams.all.size());
    const auto [found, added] = known.try_emplace({node.kind, node.slot, node.detail}, next);
    if (added) streams.all.push_back({node.kind, node.slot, static_cast<std::uint32_t>(node.detail)});
    streams.of_node[i] = found->second;
  }
  return streams;
}

}  // namespace orrery::npu
