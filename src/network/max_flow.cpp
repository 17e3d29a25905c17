// Maximum flows between NPUs, by Boost.Graph. A host is two nodes, one that links lead to and one that they lead from,
// so that no path leads through a host that does not forward.
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/edmonds_karp_max_flow.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

#include "orrery/network/network_figures.hpp"

namespace orrery::network {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Capacity = std::int64_t;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, Capacity,
                    boost::property<boost::edge_residual_capacity_t, Capacity,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

/// A network as Boost.Graph takes it, with a node from which all flow comes and one to which it goes.
class FlowNetwork {
 public:
  explicit FlowNetwork(const NetworkArcs& network)
      : network_(network), graph_(std::size_t{network.num_nodes} * 2 + 2) {}

  /// Adds an arc from where links lead from a node to where they lead to one.
  void add(std::uint32_t from, std::uint32_t to, Capacity capacity) { join(out_of(from), into(to), capacity); }
  void join(std::size_t from, std::size_t to, Capacity capacity) {
    const auto there = boost::add_edge(from, to, graph_).first, back = boost::add_edge(to, from, graph_).first;
    boost::put(boost::edge_capacity, graph_, there, capacity);
    boost::put(boost::edge_capacity, graph_, back, 0);
    boost::put(boost::edge_reverse, graph_, there, back);
    boost::put(boost::edge_reverse, graph_, back, there);
  }
  /// Lets hosts and switches pass on what comes.
  void add_devices(Capacity unlimited) {
    for (std::uint32_t node = 0; node < network_.num_nodes; ++node)
      if (!network_.is_host(node) || network_.hosts_forward) join(into(node), out_of(node), unlimited);
  }
  std::size_t into(std::uint32_t node) const { return node; }
  std::size_t out_of(std::uint32_t node) const { return std::size_t{network_.num_nodes} + node; }
  std::size_t source() const { return std::size_t{network_.num_nodes} * 2; }
  std::size_t sink() const { return source() + 1; }
  FlowGraph& graph() { return graph_; }

 private:
  const NetworkArcs& network_;
  FlowGraph graph_;
};

}  // namespace

double maximum_flow(const NetworkArcs& network, const std::vector<bool>& is_source) {
  std::uint64_t unit = 0;  // what divides all rates, so that sums of them fit
  for (const NetworkArcs::Arc& arc : network.arcs) unit = std::gcd(unit, arc.rate);
  if (unit == 0) return 0;
  double sum = 0;
  for (const NetworkArcs::Arc& arc : network.arcs) sum += static_cast<double>(arc.rate / unit);
  while (sum > 1e18) {  // rates without a common unit: then to the nearest one below
    unit *= 2;
    sum /= 2;
  }
  constexpr Capacity unlimited = std::int64_t{1} << 61U;
  FlowNetwork flow(network);
  for (const NetworkArcs::Arc& arc : network.arcs) flow.add(arc.from, arc.to, static_cast<Capacity>(arc.rate / unit));
  flow.add_devices(unlimited);
  std::vector<Capacity> sent(network.num_nodes, 0), received(network.num_nodes, 0);
  for (const NetworkArcs::Arc& arc : network.arcs) {
    sent[arc.from] += static_cast<Capacity>(arc.rate / unit);
    received[arc.to] += static_cast<Capacity>(arc.rate / unit);
  }
  for (std::uint32_t npu = 0; npu < network.num_npus; ++npu) {
    if (is_source[npu])
      flow.join(flow.source(), flow.out_of(npu), sent[npu]);
    else
      flow.join(flow.into(npu), flow.sink(), received[npu]);
  }
  return static_cast<double>(boost::push_relabel_max_flow(flow.graph(), flow.source(), flow.sink())) *
         static_cast<double>(unit);
}

std::vector<std::uint32_t> disjoint_paths(const NetworkArcs& network,
                                          const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
  FlowNetwork flow(network);
  for (const NetworkArcs::Arc& arc : network.arcs) flow.add(arc.from, arc.to, 1);
  flow.add_devices(static_cast<Capacity>(network.arcs.size()));
  std::vector<std::uint32_t> found;
  for (const auto& [from, to] : pairs)
    found.push_back(
        static_cast<std::uint32_t>(boost::edmonds_karp_max_flow(flow.graph(), flow.out_of(from), flow.into(to))));
  return found;
}

}  // namespace orrery::network
