#include "concurrency.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "orrery/trace/graph.hpp"

namespace orrery::sim {
namespace {

using trace::NodeKind;

/// Bit d: members differ in dimension d.
std::uint64_t dimensions_of(const executor::CommunicatorSpec& spec, const topology::Topology& topology) {
  const auto& members = spec.group->members;
  std::uint64_t differ = 0, possible = 0;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (topology.dimension(d).size > 1) possible |= (std::uint64_t{1} << d) & spec.dimensions;
  if (members.empty()) return possible;
  for (const NpuId member : members) {
    if (differ == possible) break;
    for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
      if (topology.coordinate(member, d) != topology.coordinate(members.front(), d)) differ |= std::uint64_t{1} << d;
  }
  return differ;
}

/// Collectives that the streams of a graph let be in service at once.
std::uint32_t most_in_streams(const trace::Graph& graph, std::uint32_t comm_streams) {
  std::vector<char> used(graph.num_streams + 1);
  for (const trace::Node& node : graph.nodes)
    if (node.kind == NodeKind::collective) used[node.stream] = 1;
  const auto of_trace = static_cast<std::uint32_t>(std::count(used.begin() + 1, used.end(), 1));
  return of_trace + (used[0] != 0 ? comm_streams : 0);
}

/// Chains that hold all the collectives of a graph of which `counts` says yes, found in one pass: each node joins the
/// first chain of which it depends on the last one. Stops at `most`.
template <class Counts>
std::uint32_t num_chains(const trace::Graph& graph, std::uint32_t most, const Counts& counts) {
  std::vector<std::uint32_t> lengths;  // of chains
  // [nodes][chains] how much of the chain the node depends on, from its beginning
  std::vector<std::uint32_t> reached(std::size_t{graph.num_nodes()} * most);
  for (const std::uint32_t node : graph.topological_order()) {
    std::uint32_t* const mine = reached.data() + std::size_t{node} * most;
    if (counts(NodeId(node))) {
      std::size_t chain = 0;
      while (chain < lengths.size() && mine[chain] != lengths[chain]) ++chain;
      if (chain == lengths.size()) {
        if (chain + 1 == most) return most;
        lengths.push_back(0);
      }
      mine[chain] = ++lengths[chain];
    }
    for (const std::uint32_t next : graph.successors_of(NodeId(node))) {
      std::uint32_t* const theirs = reached.data() + std::size_t{next} * most;
      for (std::size_t chain = 0; chain < lengths.size(); ++chain) theirs[chain] = std::max(theirs[chain], mine[chain]);
    }
  }
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(lengths.size()));
}

}  // namespace

std::vector<std::uint32_t> collectives_at_once(const executor::Setting& setting, parallel::Communicator& world) {
  const topology::Topology& topology = setting.topology;
  std::vector<std::uint64_t> spans;
  for (const auto& spec : setting.communicators) spans.push_back(dimensions_of(spec, topology));
  std::map<const executor::Program*, std::uint32_t> streams;
  std::map<std::pair<const executor::Program*, std::vector<bool>>, std::uint32_t> known;
  std::vector<std::int64_t> negated(topology.num_dimensions(), -1);
  for (const auto& npu : setting.npus) {
    const auto [most, is_new] = streams.try_emplace(npu.program, 0);
    if (is_new) most->second = most_in_streams(*npu.program->graph, setting.options.comm_streams);
    if (most->second <= 1) continue;
    for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
      std::vector<bool> uses;
      for (const GroupId group : npu.groups) uses.push_back((spans[group.index()] >> d & 1U) != 0);
      if (std::ranges::none_of(uses, [](bool is_used) { return is_used; })) continue;
      const auto [chains, is_unknown] = known.try_emplace({npu.program, uses}, 0);
      if (is_unknown)
        chains->second = num_chains(*npu.program->graph, most->second, [&](NodeId node) {
          return npu.program->graph->nodes[node.index()].kind == NodeKind::collective &&
                 uses[npu.program->use_of_node(node)];
        });
      negated[d] = std::min(negated[d], -std::int64_t{chains->second});
    }
  }
  world.minimum(negated);
  std::vector<std::uint32_t> result;
  for (const std::int64_t value : negated) result.push_back(static_cast<std::uint32_t>(-value));
  return result;
}

}  // namespace orrery::sim
