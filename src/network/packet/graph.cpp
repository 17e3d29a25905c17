#include <algorithm>
#include <map>

#include "orrery/network/packet_graph.hpp"

namespace orrery::network {

std::uint32_t PacketGraph::add(const Node& node) {
  nodes_.push_back(node);
  ports_.emplace_back();
  host_numbers_.push_back(num_hosts());
  if (node.is_host) hosts_.push_back(num_nodes() - 1);
  return num_nodes() - 1;
}

std::uint32_t PacketGraph::add_host() { return add({.is_host = true}); }

std::uint32_t PacketGraph::add_switch(Bytes buffer) { return add({.is_host = false, .buffer = buffer}); }

std::uint32_t PacketGraph::add_link(const Link& link) {
  const auto number = static_cast<std::uint32_t>(links_.size());
  links_.push_back(link);
  const auto port_a = static_cast<std::uint32_t>(ports_[link.a].size());
  const auto port_b = static_cast<std::uint32_t>(ports_[link.b].size());
  ports_[link.a].push_back({number, link.b, port_b});
  ports_[link.b].push_back({number, link.a, port_a});
  return number;
}

void PacketGraph::set_buffers(Bytes buffer) {
  for (Node& node : nodes_)
    if (!node.is_host) node.buffer = buffer;
}

namespace {

/// Returns the rank of most neighbours that have one; of equal ones the one that has the fewest switches so far, then
/// the lowest. -1 if no neighbour has a rank.
int rank_of_most(const PacketGraph& graph, std::uint32_t node, const std::vector<int>& ranks,
                 const std::vector<std::uint32_t>& num_switches) {
  std::map<int, std::uint32_t> counts;
  for (const auto& port : graph.ports(node))
    if (ranks[port.peer] >= 0) ++counts[ranks[port.peer]];
  int best = -1;
  for (const auto& [rank, count] : counts) {
    const auto load = [&](int r) { return num_switches[static_cast<std::size_t>(r)]; };
    if (best < 0 || count > counts[best] || (count == counts[best] && load(rank) < load(best))) best = rank;
  }
  return best;
}

}  // namespace

std::vector<std::uint32_t> ports_before(const PacketGraph& graph) {
  std::vector<std::uint32_t> before;
  for (std::uint32_t node = 0, ports = 0; node < graph.num_nodes(); ++node) {
    before.push_back(ports);
    ports += static_cast<std::uint32_t>(graph.ports(node).size());
  }
  return before;
}

std::int64_t device_number(const PacketGraph& graph, std::uint32_t node) {
  const std::int64_t n = node, num_hosts = graph.num_hosts();
  return n < num_hosts ? n : num_hosts - 1 - n;
}

std::vector<Rank> place_nodes(const PacketGraph& graph, int num_ranks) {
  std::vector<Rank> of_hosts;
  for (std::uint64_t h = 0; h < graph.num_hosts(); ++h)
    of_hosts.emplace_back(static_cast<int>(h * static_cast<std::uint64_t>(num_ranks) / graph.num_hosts()));
  return place_nodes(graph, of_hosts);
}

std::vector<Rank> place_nodes(const PacketGraph& graph, std::span<const Rank> of_hosts) {
  std::vector<int> ranks(graph.num_nodes(), -1);
  int num_ranks = 1;
  for (std::uint32_t h = 0; h < of_hosts.size(); ++h) {
    ranks[graph.host(h)] = of_hosts[h].value();
    num_ranks = std::max(num_ranks, of_hosts[h].value() + 1);
  }
  std::vector<std::uint32_t> num_switches(static_cast<std::size_t>(num_ranks), 0);
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    const std::vector<int> before = ranks;  // so that a tier is placed by the tier below it
    for (std::uint32_t node = 0; node < graph.num_nodes(); ++node) {
      if (ranks[node] >= 0) continue;
      ranks[node] = rank_of_most(graph, node, before, num_switches);
      if (ranks[node] < 0) continue;
      ++num_switches[static_cast<std::size_t>(ranks[node])];
      is_changed = true;
    }
  }
  std::vector<Rank> placed;
  for (const int rank : ranks) placed.emplace_back(std::max(rank, 0));
  return placed;
}

}  // namespace orrery::network
