#include "switch_buffers.hpp"

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::network {

SwitchBuffers::SwitchBuffers(const PacketGraph& graph, const PacketRules& rules) : graph_(graph), rules_(rules) {
  if (graph.num_hosts() > 0 && !graph.ports(graph.host(0)).empty())
    host_rate_ = graph.way_of(graph.ports(graph.host(0))[0]).rate;
}

std::int64_t SwitchBuffers::headroom(const PacketGraph::Port& port) const {
  if (rules_.headroom) return static_cast<std::int64_t>(*rules_.headroom);
  const PacketGraph::Way out = graph_.way_of(port), in = graph_.way_into(port);
  const auto delay = static_cast<std::uint64_t>((in.delay + out.delay).ps() / 2000);
  return static_cast<std::int64_t>(
      static_cast<std::uint64_t>(static_cast<unsigned __int128>(in.rate) * delay / 8 / 1'000'000'000) * 3);
}

std::uint32_t SwitchBuffers::share_shift(const PacketGraph::Port& port) const {
  std::uint32_t shift = rules_.share_shift;
  for (std::uint64_t rate = graph_.way_into(port).rate; rate > host_rate_ && shift > 0; rate /= 2) --shift;
  return shift;
}

std::int64_t SwitchBuffers::shared_size(std::uint32_t node) const {
  auto size = static_cast<std::int64_t>(graph_.node(node).buffer.count());
  for (const PacketGraph::Port& port : graph_.ports(node)) size -= headroom(port) + rules_.reserve;
  return size;
}

void SwitchBuffers::require_room() const {
  const auto packet = static_cast<std::int64_t>(rules_.full_packet());
  for (std::uint32_t node = 0; node < graph_.num_nodes(); ++node) {
    if (graph_.node(node).is_host) continue;
    const std::int64_t shared = shared_size(node);
    for (const PacketGraph::Port& port : graph_.ports(node)) {
      if (packet <= headroom(port) || packet <= shared >> share_shift(port)) continue;
      const std::int64_t more = (packet << share_shift(port)) - shared;
      throw Error(ErrorCode::bad_input, Place{.key = "system.network.packets.buffer"},
                  fmt::format("found {} B, of which a switch with {} ports reserves {} B, so that it drops a packet "
                              "of {} B even when it is empty",
                              graph_.node(node).buffer.count(), graph_.ports(node).size(),
                              static_cast<std::int64_t>(graph_.node(node).buffer.count()) - shared, packet),
                  fmt::format("at least {} B", static_cast<std::int64_t>(graph_.node(node).buffer.count()) + more),
                  "Give a larger buffer, or less reserve and headroom.");
    }
  }
}

}  // namespace orrery::network
