#include "orrery/npu/concurrency.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "orrery/trace/graph.hpp"
#include "turns.hpp"

namespace orrery::npu {
namespace {

using trace::NodeKind;

/// Returns how many of the nodes that count streams let be in service at once.
std::uint32_t most_in_streams(const trace::Graph& graph, std::uint32_t comm_streams, const std::vector<char>& counts) {
  std::vector<char> used(graph.num_streams + 1);
  std::uint32_t unnamed = 0;
  for (std::uint32_t node = 0; node < graph.num_nodes(); ++node) {
    if (counts[node] == 0) continue;
    const std::uint16_t stream = graph.nodes[node].stream;
    if (stream == 0)
      ++unnamed;
    else
      used[stream] = 1;
  }
  return static_cast<std::uint32_t>(std::ranges::count(used, 1)) + std::min(unnamed, comm_streams);
}

}  // namespace

std::uint32_t most_at_once(const trace::Graph& graph, std::uint32_t comm_streams, const std::vector<char>& counts) {
  constexpr std::size_t most_chains = 64;
  const std::uint32_t most = most_in_streams(graph, comm_streams, counts);
  if (most <= 1) return 1;
  std::vector<std::uint32_t> lengths;               // [chains]
  std::vector<std::vector<std::uint32_t>> reached;  // [chains][nodes] how many nodes of a chain precede it
  for (const std::uint32_t node : graph.topological_order()) {
    if (counts[node] != 0) {
      std::size_t chain = 0;
      while (chain < lengths.size() && reached[chain][node] != lengths[chain]) ++chain;
      if (chain == lengths.size()) {
        if (chain + 1 >= std::min<std::size_t>(most, most_chains)) return most;
        lengths.push_back(0);
        reached.emplace_back(graph.num_nodes());
      }
      reached[chain][node] = ++lengths[chain];
    }
    for (const std::uint32_t next : graph.successors_of(NodeId(node)))
      for (auto& of_chain : reached) of_chain[next] = std::max(of_chain[next], of_chain[node]);
  }
  return static_cast<std::uint32_t>(lengths.size());
}

std::vector<std::vector<std::uint32_t>> collectives_at_once(const RunContext& run,
                                                            std::span<const std::uint32_t> set_of,
                                                            parallel::Communicator& world) {
  const topology::Topology& topology = run.topology();
  const std::uint32_t num_dimensions = topology.num_dimensions();
  const std::size_t num_sets = set_of.empty() ? 1 : std::ranges::max(set_of) + std::size_t{1};
  std::vector<std::uint64_t> spans;
  for (const auto& spec : run.communicators)
    spans.push_back(topology.ports().contending(dimensions_of(spec, topology)));
  const std::uint32_t streams = run.options.dimension_streams ? 1 : run.options.comm_streams;
  std::vector<std::int64_t> negated(num_sets * num_dimensions, -1);
  const auto look_at = [&](std::uint32_t set, const Program& program, const std::vector<std::uint64_t>& span_of_use) {
    const trace::Graph& graph = *program.graph;
    std::vector<char> counts(graph.num_nodes());
    for (std::uint32_t d = 0; d < num_dimensions; ++d) {
      for (std::uint32_t node = 0; node < graph.num_nodes(); ++node)
        counts[node] = graph.nodes[node].kind == NodeKind::collective &&
                       graph.nodes[node].collective != trace::CollectiveKind::barrier &&
                       (span_of_use[program.use_of_node(NodeId(node))] >> d & 1U) != 0;
      const std::int64_t at_once = most_at_once(graph, streams, counts);
      auto& of_set = negated[std::size_t{set} * num_dimensions + d];
      of_set = std::min(of_set, -at_once);
    }
  };
  using Key = std::tuple<std::uint32_t, const Program*, std::vector<std::uint64_t>>;
  std::set<Key> known;
  Key key, last;
  for (const auto& npu : run.npus) {
    auto& [set, program, spans_of_uses] = key;
    set = set_of.empty() ? 0 : set_of[npu.id.index()];
    program = npu.program;
    spans_of_uses.clear();
    for (const GroupId group : npu.groups) spans_of_uses.push_back(spans[group.index()]);
    if (key == last) continue;
    last = key;
    if (known.insert(key).second) look_at(set, *program, spans_of_uses);
  }
  world.minimum(negated);
  std::vector<std::vector<std::uint32_t>> result(num_sets);
  for (std::size_t i = 0; i < negated.size(); ++i)
    result[i / num_dimensions].push_back(static_cast<std::uint32_t>(-negated[i]));
  return result;
}

}  // namespace orrery::npu
