#include "orrery/network/network_figures.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"
#include "orrery/base/text.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/topology/fabric.hpp"
#include "orrery/topology/wiring.hpp"

namespace orrery::network {
namespace {

constexpr std::uint32_t most_sources = 1024;
constexpr std::uint32_t most_npus_of_all_halves = 16;
constexpr std::uint64_t most_steps_of_pattern = 1'000'000'000;  // NPUs times links
constexpr std::uint64_t most_steps_of_paths = 500'000'000;      // pairs times links of an NPU times links
constexpr std::uint64_t fewest_pairs = 10;                      // of which paths are counted, whatever it takes

NetworkArcs arcs_of_graph(const GivenGraph& given, std::uint32_t num_npus) {
  NetworkArcs network{.num_npus = num_npus,
                      .num_idle = given.graph.num_hosts() - num_npus,
                      .num_nodes = given.graph.num_nodes(),
                      .hosts_forward = given.routes.hosts_forward};
  std::vector<bool> is_down(given.graph.links().size());
  for (const LinkFailure& failure : given.failures)
    if (failure.time == Time::zero()) is_down[failure.link] = true;
  for (std::size_t i = 0; i < given.graph.links().size(); ++i) {
    const PacketGraph::Link& link = given.graph.links()[i];
    if (is_down[i]) continue;
    for (const auto& [from, to] : {std::pair(link.a, link.b), std::pair(link.b, link.a)})
      network.arcs.push_back({from, to, link.way_to(to).rate});
  }
  return network;
}

NetworkArcs arcs_of_shapes(const topology::Topology& topology) {
  const topology::Fabric fabric(topology);
  const std::uint32_t num_npus = topology.num_npus();
  NetworkArcs network{.num_npus = num_npus,
                      .num_nodes = num_npus + static_cast<std::uint32_t>(fabric.switches().size()),
                      .hosts_forward = true};
  const auto node_of = [&](std::int64_t end) {
    return end >= 0 ? static_cast<std::uint32_t>(end) : num_npus + static_cast<std::uint32_t>(-1 - end);
  };
  for (std::uint32_t id = 0; id < fabric.num_links(); ++id) {
    const topology::Fabric::Link link = fabric.find(topology::LinkId(id));
    if (!fabric.exists(link)) continue;
    const auto [from, to] = fabric.ends(link);
    if (from >= 0 && to >= 0 && topology.links().has_failed(link.dimension, NpuId(node_of(from))) &&
        topology.links().next_step(link.dimension, NpuId(node_of(from)), NpuId(node_of(to))) !=
            topology.coordinate(NpuId(node_of(to)), link.dimension))
      continue;
    const double rate = fabric.bandwidth(link).bytes_per_ns() * 8e9;
    const std::uint32_t dimension = link.is_of_port ? NetworkArcs::Arc::any_dimension : link.dimension;
    network.arcs.push_back({node_of(from), node_of(to), static_cast<std::uint64_t>(std::llround(rate)), dimension});
  }
  return network;
}

/// The arcs that leave each node.
class Leaving {
 public:
  explicit Leaving(const NetworkArcs& network) : network_(network), first_(network.num_nodes + 1) {
    for (const NetworkArcs::Arc& arc : network.arcs) ++first_[arc.from + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    arcs_.resize(network.arcs.size());
    for (std::uint32_t i = 0; i < network.arcs.size(); ++i) arcs_[next[network.arcs[i].from]++] = i;
  }
  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(arcs_).subspan(first_[node], first_[node + 1] - first_[node]);
  }
  const NetworkArcs& network() const { return network_; }

 private:
  const NetworkArcs& network_;
  std::vector<std::uint32_t> first_, arcs_;
};

/// The shortest paths from one NPU.
struct ShortestPaths {
  static constexpr std::uint32_t unknown = ~0U;

  std::vector<std::uint32_t> distance;  ///< [nodes] links
  std::vector<double> count;            ///< [nodes] of shortest paths
  std::vector<std::uint32_t> reached;   ///< nodes, ascending in distance

  ShortestPaths(const Leaving& leaving, std::uint32_t source);
};

ShortestPaths::ShortestPaths(const Leaving& leaving, std::uint32_t source)
    : distance(leaving.network().num_nodes, unknown), count(leaving.network().num_nodes, 0), reached{source} {
  const NetworkArcs& network = leaving.network();
  distance[source] = 0;
  count[source] = 1;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::uint32_t node = reached[i];
    if (node != source && network.is_host(node) && !network.hosts_forward) continue;
    for (const std::uint32_t arc : leaving.of(node)) {
      const std::uint32_t to = network.arcs[arc].to;
      if (distance[to] == unknown) {
        distance[to] = distance[node] + 1;
        reached.push_back(to);
      }
      if (distance[to] == distance[node] + 1) count[to] += count[node];
    }
  }
}

/// Adds to each link its share of a message from the source to each other NPU, evenly over all shortest paths (as
/// betweenness is counted: Brandes, J. Math. Sociology 25, 2001). Returns whether there is a path to all of them.
bool add_loads(const Leaving& leaving, std::uint32_t source, std::vector<double>& loads) {
  const NetworkArcs& network = leaving.network();
  const ShortestPaths paths(leaving, source);
  std::vector<double> through(network.num_nodes, 0);  // messages that a node gets or passes on
  std::uint32_t reached = 0;
  for (std::size_t i = paths.reached.size(); i > 0; --i) {
    const std::uint32_t node = paths.reached[i - 1];
    if (node < network.num_npus && node != source) {
      through[node] += 1;
      ++reached;
    }
    if (node != source && network.is_host(node) && !network.hosts_forward) continue;
    for (const std::uint32_t arc : leaving.of(node)) {
      const std::uint32_t to = network.arcs[arc].to;
      if (paths.distance[to] != paths.distance[node] + 1) continue;
      const double share = paths.count[node] / paths.count[to] * through[to];
      loads[arc] += share;
      through[node] += share;
    }
  }
  return reached + 1 == network.num_npus;
}

PathDiversity::Range range_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  return {values.front(), values[(values.size() - 1) / 2], values.back()};
}

/// Returns `count` different numbers below `all` by a seed, ascending; all of them if there are no more.
std::vector<std::uint64_t> chosen(std::uint64_t all, std::uint64_t count, std::uint32_t seed) {
  std::vector<std::uint64_t> numbers;
  if (count > all / 2) {
    numbers.resize(all);
    std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
    for (std::uint64_t i = 0; i < std::min(count, all); ++i)
      std::swap(numbers[i], numbers[i + mix(seed, i) % (all - i)]);
    numbers.resize(std::min(count, all));
    std::ranges::sort(numbers);
    return numbers;
  }
  for (std::uint64_t draw = 0; numbers.size() < count; ++draw) {
    numbers.push_back(mix(seed, draw) % all);
    if (numbers.size() < count) continue;
    std::ranges::sort(numbers);
    const auto repeated = std::ranges::unique(numbers);
    numbers.erase(repeated.begin(), repeated.end());
  }
  return numbers;
}

/// Returns whether each NPU has one link, which joins it with a switch, and none forwards. Then cutting an NPU off
/// costs its link.
bool has_single_links(const NetworkArcs& network) {
  std::vector<std::uint32_t> links(network.num_npus, 0);
  std::uint32_t hosts_joined = 0;
  for (const NetworkArcs::Arc& arc : network.arcs) {
    if (arc.from < network.num_npus) ++links[arc.from];
    if (network.is_host(arc.from) && network.is_host(arc.to)) ++hosts_joined;
  }
  return hosts_joined == 0 && std::ranges::all_of(links, [](std::uint32_t count) { return count == 1; });
}

/// Returns whether the links from each node to each other one have the same rates as those back.
bool carries_the_same_back(const NetworkArcs& network) {
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> there, back;
  for (const NetworkArcs::Arc& arc : network.arcs) {
    there.emplace_back(arc.from, arc.to, arc.rate);
    back.emplace_back(arc.to, arc.from, arc.rate);
  }
  std::ranges::sort(there);
  std::ranges::sort(back);
  return there == back;
}

/// Returns a lower bound of the bandwidth between any two halves. Let x be the rate at which each NPU can send to each
/// other one, so that a cut between a and b NPUs carries a b x. With a = b = half that is a bound. If each NPU has one
/// link of r or more, a cut goes through the links of some NPUs and separates the others: it carries
/// (n - a - b) r + a b x', where x' does not count these links. That is the least for a and b at the ends of their
/// ranges, which are 0 and half.
double bandwidth_of_pattern(const NetworkArcs& network) {
  const double n = network.num_npus, smaller = std::floor(n / 2), larger = n - smaller;
  if (std::uint64_t{network.num_npus} * network.arcs.size() > most_steps_of_pattern) return 0;
  const Leaving leaving(network);
  std::vector<double> loads(network.arcs.size(), 0);
  for (std::uint32_t npu = 0; npu < network.num_npus; ++npu)
    if (!add_loads(leaving, npu, loads)) return 0;  // pairs without a path send nothing over the cut
  const bool counts_own_links = !has_single_links(network);
  double rate = HUGE_VAL, own = HUGE_VAL;
  for (std::size_t i = 0; i < network.arcs.size(); ++i) {
    const NetworkArcs::Arc& arc = network.arcs[i];
    const bool is_own = arc.from < network.num_npus || arc.to < network.num_npus;
    if (is_own) own = std::min(own, static_cast<double>(arc.rate));
    if (loads[i] > 0 && (counts_own_links || !is_own)) rate = std::min(rate, static_cast<double>(arc.rate) / loads[i]);
  }
  const double by_pattern = rate * smaller * larger;
  return counts_own_links ? by_pattern : std::min(by_pattern, smaller * own);
}

/// Returns the minimum cut between these NPUs and the others, in both directions.
double least_flow(const NetworkArcs& network, std::vector<bool> is_first, bool is_symmetric) {
  const double flow = maximum_flow(network, is_first);
  if (is_symmetric) return flow;
  is_first.flip();
  return std::min(flow, maximum_flow(network, is_first));
}

/// Looks at all halves, after which the bounds meet.
void look_at_all(const NetworkArcs& network, bool is_symmetric, Bisection& bisection) {
  const std::uint32_t n = network.num_npus;
  std::vector<bool> is_first(n - n / 2, false);
  is_first.resize(n, true);
  do {
    if (n % 2 == 0 && is_first[0]) break;  // from here on it is the others' turn
    const double flow = least_flow(network, is_first, is_symmetric);
    if (flow >= bisection.at_most) continue;
    bisection.at_most = flow;
    std::vector<NpuId> npus;
    for (std::uint32_t npu = 0; npu < n; ++npu)
      if (is_first[npu]) npus.emplace_back(npu);
    bisection.halves = fmt::format("NPUs {} and the others", list(npus));
  } while (std::next_permutation(is_first.begin(), is_first.end()));
  bisection.at_least = bisection.at_most;
}

}  // namespace

NetworkArcs arcs_of(const topology::Topology& topology, const Options& options) {
  return options.graph ? arcs_of_graph(*options.graph, topology.num_npus()) : arcs_of_shapes(topology);
}

std::optional<double> TierFigures::oversubscription() const {
  if (up.rate <= 0 || from_below <= 0) return {};
  return from_below / up.rate;
}

std::vector<TierFigures> tiers_of(const NetworkArcs& network) {
  const Leaving leaving(network);
  std::vector<std::uint32_t> tier(network.num_nodes, ShortestPaths::unknown), reached;
  for (std::uint32_t node = 0; node < network.num_nodes; ++node)
    if (network.is_host(node)) {
      tier[node] = 0;
      reached.push_back(node);
    }
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const std::uint32_t arc : leaving.of(reached[i])) {
      const std::uint32_t to = network.arcs[arc].to;
      if (tier[to] != ShortestPaths::unknown) continue;
      tier[to] = tier[reached[i]] + 1;
      reached.push_back(to);
    }
  std::vector<TierFigures> tiers;
  for (const std::uint32_t node : reached) {
    if (tier[node] == tiers.size()) tiers.push_back({.tier = tier[node]});
    ++tiers[tier[node]].devices;
  }
  const auto is_known = [&](const NetworkArcs::Arc& arc) {
    return tier[arc.from] != ShortestPaths::unknown && tier[arc.to] != ShortestPaths::unknown;
  };
  std::vector<bool> leads_up(network.num_nodes, false);
  for (const NetworkArcs::Arc& arc : network.arcs)
    if (is_known(arc) && tier[arc.to] > tier[arc.from]) leads_up[arc.from] = true;
  for (const NetworkArcs::Arc& arc : network.arcs) {
    if (!is_known(arc)) continue;
    if (tier[arc.to] > tier[arc.from] && leads_up[arc.to])
      tiers[tier[arc.to]].from_below += static_cast<double>(arc.rate);
    TierFigures& of = tiers[tier[arc.from]];
    TierFigures::Side& side = tier[arc.to] < tier[arc.from]   ? of.down
                              : tier[arc.to] > tier[arc.from] ? of.up
                                                              : of.across;
    ++side.links;
    side.rate += static_cast<double>(arc.rate);
  }
  return tiers;
}

PathDiversity paths_of(const NetworkArcs& network, std::uint32_t most_pairs, std::uint32_t seed) {
  PathDiversity diversity;
  const Leaving leaving(network);
  const std::uint64_t n = network.num_npus;
  double hops = 0;
  std::uint64_t reachable = 0;
  for (const std::uint64_t source : chosen(n, most_sources, seed)) {
    const ShortestPaths paths(leaving, static_cast<std::uint32_t>(source));
    ++diversity.sources;
    for (std::uint32_t npu = 0; npu < n; ++npu) {
      if (npu == source) continue;
      if (paths.distance[npu] == ShortestPaths::unknown) {
        ++diversity.unreachable;
        continue;
      }
      ++reachable;
      hops += paths.distance[npu];
      diversity.diameter = std::max(diversity.diameter, paths.distance[npu]);
    }
  }
  if (reachable > 0) diversity.mean_hops = hops / static_cast<double>(reachable);
  // A flow between two NPUs takes at most as many searches of all links as one of them has links.
  const std::uint64_t links_of_npu = network.arcs.size() / std::max<std::uint64_t>(network.num_nodes, 1) + 1;
  const std::uint64_t affordable =
      most_steps_of_paths / (links_of_npu * std::max<std::uint64_t>(network.arcs.size(), 1));
  most_pairs = static_cast<std::uint32_t>(std::min<std::uint64_t>(most_pairs, std::max(affordable, fewest_pairs)));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const std::uint64_t number : n < 2 ? std::vector<std::uint64_t>() : chosen(n * (n - 1), most_pairs, seed)) {
    const auto from = static_cast<std::uint32_t>(number / (n - 1)),
               other = static_cast<std::uint32_t>(number % (n - 1));
    pairs.emplace_back(from, other + (other >= from ? 1 : 0));
  }
  std::vector<double> shortest, disjoint;
  std::optional<ShortestPaths> paths;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i == 0 || pairs[i].first != pairs[i - 1].first) paths.emplace(leaving, pairs[i].first);
    shortest.push_back(paths->count[pairs[i].second]);
  }
  for (const std::uint32_t count : disjoint_paths(network, pairs)) disjoint.push_back(count);
  diversity.pairs = pairs.size();
  diversity.shortest = range_of(std::move(shortest));
  diversity.disjoint = range_of(std::move(disjoint));
  return diversity;
}

Bisection bisection_of(const NetworkArcs& network, const std::vector<Halves>& halves) {
  Bisection bisection{.at_least = bandwidth_of_pattern(network), .at_most = HUGE_VAL, .halves = {}};
  const bool is_symmetric = carries_the_same_back(network);
  for (const Halves& half : halves) {
    ensure(half.is_first.size() == network.num_npus, "each NPU is in a half");
    const double flow = least_flow(network, half.is_first, is_symmetric);
    if (flow >= bisection.at_most) continue;
    bisection.at_most = flow;
    bisection.halves = half.name;
  }
  std::vector<double> sent(network.num_npus, 0);
  for (const NetworkArcs::Arc& arc : network.arcs)
    if (arc.from < network.num_npus) sent[arc.from] += static_cast<double>(arc.rate);
  bisection.injection = std::accumulate(sent.begin(), sent.end(), 0.0) / 2;
  bisection.at_least = std::min(bisection.at_least, bisection.at_most);
  if (!bisection.is_exact() && network.num_npus <= most_npus_of_all_halves)
    look_at_all(network, is_symmetric, bisection);
  return bisection;
}

}  // namespace orrery::network
