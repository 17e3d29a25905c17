#include "orrery/network/reduction_trees.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <set>
#include <string>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::network {
namespace {

constexpr std::uint32_t unreachable_distance = std::numeric_limits<std::uint32_t>::max();
/// Least family of a communicator's trees. Smaller ones are of trees that lists spell out.
constexpr std::uint32_t first_own_family = 1U << 31U;

std::string key_of_rule(std::string_view name) { return fmt::format("system.network.packets.reduction.{}", name); }

[[noreturn]] void refuse_tree(std::string_view found, std::string_view expected,
                              std::string_view key = "workload.trees") {
  throw Error(ErrorCode::bad_input, {.key = std::string(key)}, found, expected);
}

}  // namespace

ReductionTrees::ReductionTrees(const PacketGraph& graph, const ReductionRules& rules,
                               std::span<const LinkFailure> failures)
    : graph_(graph), rules_(rules), fails_at_(graph.links().size(), Time::max()), num_families_(first_own_family) {
  for (const LinkFailure& failure : failures) fails_at_[failure.link] = std::min(fails_at_[failure.link], failure.time);
}

// ---- Trees of communicators ----

/// Returns how many links lead from a switch to each other one, without passing a host.
const ReductionTrees::Distances& ReductionTrees::distances_from(std::uint32_t node) {
  const auto [found, is_new] = distances_.try_emplace(node);
  if (!is_new) return found->second;
  Distances& distances = found->second;
  distances.assign(graph_.num_nodes(), unreachable_distance);
  distances[node] = 0;
  std::deque<std::uint32_t> next = {node};
  while (!next.empty()) {
    const std::uint32_t at = next.front();
    next.pop_front();
    for (const PacketGraph::Port& port : graph_.ports(at)) {
      if (graph_.node(port.peer).is_host || fails_at_[port.link] == Time::zero()) continue;
      if (distances[port.peer] != unreachable_distance) continue;
      distances[port.peer] = distances[at] + 1;
      next.push_back(port.peer);
    }
  }
  return distances;
}

/// Returns the switches from which links lead to all hosts, nearest first.
std::vector<std::uint32_t> ReductionTrees::roots_for(std::span<const std::uint32_t> hosts) {
  std::set<std::vector<std::uint32_t>> beside;  // switches beside a host
  for (const std::uint32_t host : hosts) {
    std::vector<std::uint32_t> switches;
    for (const PacketGraph::Port& port : graph_.ports(host))
      if (!graph_.node(port.peer).is_host && fails_at_[port.link] != Time::zero()) switches.push_back(port.peer);
    std::ranges::sort(switches);
    beside.insert(std::move(switches));
  }
  std::vector<std::uint32_t> greatest(graph_.num_nodes(), 0);
  for (const std::vector<std::uint32_t>& switches : beside) {
    Distances least(graph_.num_nodes(), unreachable_distance);
    for (const std::uint32_t node : switches) {
      const Distances& from = distances_from(node);
      for (std::size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], from[i]);
    }
    for (std::size_t i = 0; i < least.size(); ++i) greatest[i] = std::max(greatest[i], least[i]);
  }
  std::vector<std::uint32_t> roots;
  for (std::uint32_t node = 0; node < graph_.num_nodes(); ++node)
    if (!graph_.node(node).is_host && greatest[node] != unreachable_distance) roots.push_back(node);
  std::ranges::stable_sort(roots, {}, [&](std::uint32_t node) { return greatest[node]; });
  return roots;
}

ReductionTrees::Branches ReductionTrees::branches_to(std::uint32_t root, std::span<const std::uint32_t> hosts) {
  const Distances& distances = distances_from(root);
  const auto next_of = [&](std::uint32_t node) {
    std::uint32_t next = none;
    for (const PacketGraph::Port& port : graph_.ports(node)) {
      if (graph_.node(port.peer).is_host || fails_at_[port.link] == Time::zero()) continue;
      const bool is_nearer = next == none || distances[port.peer] < distances[next] ||
                             (distances[port.peer] == distances[next] && port.peer < next);
      if (is_nearer) next = port.peer;
    }
    return next;
  };
  Branches branches;
  for (std::uint32_t node : hosts)
    while (node != root && !branches.contains(node)) {
      const std::uint32_t next = next_of(node);
      branches.emplace(node, next);
      node = next;
    }
  return branches;
}

std::uint32_t ReductionTrees::add_communicator(std::span<const std::uint32_t> hosts, std::uint32_t order) {
  const std::vector<std::uint32_t> roots = roots_for(hosts);
  if (roots.size() < rules_.trees)
    throw Error(ErrorCode::bad_input, {.key = key_of_rule("trees")},
                fmt::format("found {}, and links lead from {} to all of the {} that reduce together",
                            counted(rules_.trees, "tree"), counted(roots.size(), "switch", "switches"),
                            counted(hosts.size(), "host")),
                roots.empty() ? std::string("hosts that switches join, or another algorithm than inSwitch")
                              : fmt::format("at most {}", counted(roots.size(), "tree")));
  const auto first = static_cast<std::uint32_t>(num_trees());
  const auto [found, is_new] = first_families_.try_emplace({hosts.begin(), hosts.end()}, num_families_);
  if (is_new) num_families_ += rules_.trees;
  for (std::uint32_t t = 0; t < rules_.trees; ++t) build(branches_to(roots[t], hosts), hosts, found->second + t, order);
  return first;
}

std::uint32_t ReductionTrees::add_tree(const Branches& branches, std::span<const std::uint32_t> hosts,
                                       std::uint32_t family) {
  return build(branches, hosts, family, 0);
}

// ---- Any tree ----

/// Returns the first port of a node that leads to another one. Trees of communicators only pass links of the graph, so
/// that they can be refused for failures alone.
std::uint32_t ReductionTrees::port_to(std::uint32_t from, std::uint32_t to, std::uint32_t family) const {
  const auto ports = graph_.ports(from);
  for (std::uint32_t number = 0; number < ports.size(); ++number) {
    if (ports[number].peer != to || fails_at_[ports[number].link] == Time::zero()) continue;
    if (const Time time = fails_at_[ports[number].link]; time != Time::max())
      refuse_tree(fmt::format("found a tree over the link between node {} and node {}, which fails after {} ps", from,
                              to, time.ps()),
                  "links that do not fail: reductions do not go another way",
                  family < first_own_family ? "workload.trees" : "system.network.graph");
    return number;
  }
  refuse_tree(fmt::format("found a tree from node {} to node {}, which no link joins", from, to),
              "branches along links of the graph");
}

std::uint32_t ReductionTrees::queue_for(const QueueKey& key) {
  const auto [found, is_new] = queue_numbers_.try_emplace(key, static_cast<std::uint32_t>(queues_.size()));
  if (is_new) queues_.push_back({key.node, 1});
  return found->second;
}

/// Returns the root of the branches of hosts, and the nodes below each node.
ReductionTrees::Below ReductionTrees::nodes_below(const Branches& branches,
                                                  std::span<const std::uint32_t> hosts) const {
  Below below;
  std::set<std::uint32_t> known;
  for (const std::uint32_t host : hosts) {
    for (std::uint32_t node = host; known.insert(node).second;) {
      const auto next = branches.find(node);
      if (next == branches.end()) {
        if (below.root != none || graph_.node(node).is_host)
          refuse_tree(fmt::format("found node {}, from which no branch leads on", node), "one root, a switch");
        below.root = node;
        break;
      }
      if (graph_.node(next->second).is_host)
        refuse_tree(fmt::format("found a branch from node {} to host {}", node, next->second), "a switch");
      below.nodes[next->second].push_back(node);
      node = next->second;
    }
  }
  if (below.root == none) refuse_tree("found branches in a circle", "one root, a switch");
  for (auto& [node, nodes] : below.nodes) std::ranges::sort(nodes);
  return below;
}

std::uint32_t ReductionTrees::build(const Branches& branches, std::span<const std::uint32_t> hosts,
                                    std::uint32_t family, std::uint32_t order) {
  Below below = nodes_below(branches, hosts);
  const auto tree = static_cast<std::uint32_t>(hosts_.size());
  auto& places_of_hosts = hosts_.emplace_back();
  // Nodes follow their parents, so that a parent's place is known.
  std::deque<std::pair<std::uint32_t, std::uint32_t>> next = {{below.root, none}};  // nodes, places of parents
  while (!next.empty()) {
    const auto [node, parent] = next.front();
    next.pop_front();
    const auto place = static_cast<std::uint32_t>(places_.size());
    const bool is_host = graph_.node(node).is_host;
    const std::uint32_t port = parent == none ? 0 : port_to(node, places_[parent].node, family);
    places_.push_back({node, tree, queue_for({node, order, is_host ? family : none}), parent, port,
                       static_cast<std::uint32_t>(children_.size()), 0});
    if (parent != none) {
      Place& above = places_[parent];
      children_[above.first_child + above.num_children++] = {place, graph_.ports(node)[port].peer_port};
    }
    if (is_host) {
      places_of_hosts.emplace(node, place);
      continue;
    }
    auto& families = families_at_[node];
    if (std::ranges::find(families, family) == families.end()) families.push_back(family);
    for (const std::uint32_t child : below.nodes[node]) next.emplace_back(child, place);
    children_.resize(children_.size() + below.nodes[node].size());
  }
  if (places_of_hosts.size() != hosts.size()) refuse_tree("found branches in a circle", "one root, a switch");
  return tree;
}

void ReductionTrees::finish() {
  for (const auto& [node, families] : families_at_)
    if (families.size() > rules_.most_trees)
      throw Error(ErrorCode::bad_input, {.key = key_of_rule("most-trees")},
                  fmt::format("found {}, and node {} would take part in {}", rules_.most_trees, node,
                              counted(families.size(), "tree")),
                  fmt::format("at least {}, or fewer communicators that reduce in this switch", families.size()));
  std::map<std::uint32_t, std::uint32_t> num_orders;  // by switch
  for (const auto& [key, queue] : queue_numbers_)
    if (key.family == none) ++num_orders[key.node];
  for (const auto& [key, queue] : queue_numbers_) {
    if (key.family != none) continue;
    const std::uint32_t count = num_orders[key.node];
    if (rules_.operations < count)
      throw Error(ErrorCode::bad_input, {.key = key_of_rule("operations")},
                  fmt::format("found {}, and {} reduce in node {}", rules_.operations, counted(count, "communicator"),
                              key.node),
                  fmt::format("at least {}, so that no communicator waits for another one in a circle", count));
    queues_[queue].at_a_time = rules_.operations / count;
  }
}

}  // namespace orrery::network
