#include "relay_delays.hpp"

#include <algorithm>
#include <utility>

#include "packet.hpp"

namespace orrery::network {

RelayDelays::RelayDelays(const PacketGraph& graph, const PacketRules& rules, std::span<const Rank> of_node,
                         int num_ranks)
    : num_ranks_(static_cast<std::size_t>(num_ranks)), least_(num_ranks_ * num_ranks_, Time::max()) {
  // A credit comes one delay after the begin of the transmission by which it follows.
  const std::uint32_t shortest =
      rules.uses_credits ? 0 : std::min({rules.header, rules.acknowledgement, rules.pause_frame});
  Time to_hosts = Time::max();
  for (const PacketGraph::Link& link : graph.links()) {
    for (const auto& [from, to] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      const PacketGraph::Way way = link.way_to(to);
      const Time delay = std::max(way.delay + transmission_time(shortest, way.rate, rules), least_link_delay);
      of_all_ = std::min(of_all_, delay);
      if (graph.node(to).is_host) to_hosts = std::min(to_hosts, delay);
      Time& least = least_[of_node[from].index() * num_ranks_ + of_node[to].index()];
      least = std::min(least, delay);
    }
  }
  // With this rule whoever sends an acknowledgement over its last link tells the other end of the flow, on any rank.
  if (rules.completion == PacketCompletion::acknowledged)
    for (Time& least : least_) least = std::min(least, to_hosts);
}

Time RelayDelays::least_between() const {
  Time least = Time::max();
  for (std::size_t a = 0; a < num_ranks_; ++a)
    for (std::size_t b = 0; b < num_ranks_; ++b)
      if (a != b) least = std::min(least, least_[a * num_ranks_ + b]);
  return least;
}

}  // namespace orrery::network
