#include <metis.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/partition/communication_graph.hpp"
#include "orrery/partition/contiguous.hpp"
#include "orrery/partition/short_links.hpp"
#include "orrery/partition/strategy.hpp"

namespace orrery::partition {

Strategy block();

namespace {

/// Neighbours and their weight, once for each direction.
using Edge = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;

/// The graph as METIS takes it: the neighbours of vertex i are adjacent[first[i]] .. adjacent[first[i + 1] - 1].
struct MetisGraph {
  std::vector<idx_t> first, adjacent, edge_weights, vertex_weights;
};

/// Scales weights so that their sum fits an idx_t of 32 bits with room for METIS's own sums; each is at least 1.
std::vector<idx_t> scaled(std::span<const std::uint64_t> weights) {
  double sum = 0;
  for (const auto weight : weights) sum += static_cast<double>(weight);
  constexpr double largest_sum = 1 << 28;
  const double factor = sum > largest_sum ? largest_sum / sum : 1;
  std::vector<idx_t> result;
  result.reserve(weights.size());
  for (const auto weight : weights)
    result.push_back(std::max<idx_t>(1, static_cast<idx_t>(static_cast<double>(weight) * factor)));
  return result;
}

/// The edges of flows, and for each communicator those of the ring of its members.
std::vector<Edge> edges_of(const CommunicationGraph& graph) {
  std::vector<Edge> edges;
  const auto join = [&](std::uint32_t a, std::uint32_t b, std::uint64_t weight) {
    if (a == b) return;
    edges.emplace_back(a, b, weight);
    edges.emplace_back(b, a, weight);
  };
  for (const auto& flow : graph.flows) join(flow.from, flow.to, flow.bytes + flow.messages);
  for (const auto& group : graph.groups) {
    auto members = group.members;
    std::sort(members.begin(), members.end());
    if (members.size() < 2) continue;
    const std::uint64_t weight = (group.bytes + group.collectives) / members.size();
    for (std::size_t i = 0; i + 1 < members.size(); ++i) join(members[i].value(), members[i + 1].value(), weight);
    if (members.size() > 2) join(members.back().value(), members.front().value(), weight);
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

MetisGraph metis_graph(const CommunicationGraph& graph) {
  const std::vector<Edge> edges = edges_of(graph);
  MetisGraph result;
  std::vector<std::uint64_t> weights;
  result.first.assign(graph.loads.size() + 1, 0);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const auto [from, to, weight] = edges[i];
    if (i > 0 && std::get<0>(edges[i - 1]) == from && std::get<1>(edges[i - 1]) == to) {
      weights.back() += weight;
      continue;
    }
    result.adjacent.push_back(static_cast<idx_t>(to));
    weights.push_back(weight);
    ++result.first[from + 1];
  }
  std::partial_sum(result.first.begin(), result.first.end(), result.first.begin());
  result.edge_weights = scaled(weights);
  result.vertex_weights = scaled(graph.loads);
  return result;
}

/// The graph of sets of NPUs.
CommunicationGraph contracted(const CommunicationGraph& graph, const NpuSets& sets) {
  CommunicationGraph result;
  result.loads.resize(sets.count);
  for (std::size_t npu = 0; npu < graph.loads.size(); ++npu) result.loads[sets.of_npu[npu]] += graph.loads[npu];
  for (Flow flow : graph.flows) {
    flow.from = sets.of_npu[flow.from];
    flow.to = sets.of_npu[flow.to];
    result.flows.push_back(flow);
  }
  for (GroupTraffic group : graph.groups) {
    for (NpuId& member : group.members) member = NpuId(sets.of_npu[member.index()]);
    result.groups.push_back(std::move(group));
  }
  return result;
}

/// Balances loads and leaves few bytes between ranks. With a rank for each NPU or more, and where no NPU communicates,
/// the result is `block`. NPUs that short links join stay together (kept_together). Source: Karypis and Kumar, A fast
/// and high quality multilevel scheme for partitioning irregular graphs, SIAM J. Sci. Comput. 20 (1998). Cost O(edges).
Partition make_by_metis(std::string_view, const Problem& problem) {
  ensure(problem.graph != nullptr, "METIS needs the graph of the traces");
  const bool is_of_npus = problem.graph->loads.size() == problem.topology.num_npus();  // or of NPUs and switches
  NpuSets sets{std::vector<std::uint32_t>(problem.graph->loads.size()), 0};
  if (is_of_npus)
    sets = kept_together(problem.topology, problem.num_ranks);
  else
    for (std::uint32_t& set : sets.of_npu) set = sets.count++;
  const bool is_contracted = sets.count < problem.graph->loads.size();
  const auto num_npus = static_cast<std::uint32_t>(problem.graph->loads.size());
  const int num_ranks = problem.num_ranks;
  MetisGraph graph = metis_graph(is_contracted ? contracted(*problem.graph, sets) : *problem.graph);
  if (num_ranks == 1 || static_cast<std::uint32_t>(num_ranks) >= num_npus || graph.adjacent.empty())
    return is_of_npus ? block().make({}, problem) : contiguous(num_npus, 1, num_ranks);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  options[METIS_OPTION_NUMBERING] = 0;
  options[METIS_OPTION_NCUTS] = 4;
  idx_t vertices = static_cast<idx_t>(sets.count), constraints = 1, parts = num_ranks, cut_weight = 0;
  std::vector<idx_t> part(sets.count);
  // METIS's manual: recursive bisection balances better, k-way cuts less and is faster for many parts.
  const auto partition = num_ranks <= 8 ? METIS_PartGraphRecursive : METIS_PartGraphKway;
  const int status =
      partition(&vertices, &constraints, graph.first.data(), graph.adjacent.data(), graph.vertex_weights.data(),
                nullptr, graph.edge_weights.data(), &parts, nullptr, nullptr, options, &cut_weight, part.data());
  if (status == METIS_ERROR_MEMORY) throw std::bad_alloc();
  ensure(status == METIS_OK, "METIS could not cut the graph");
  std::vector<Rank> ranks;
  for (const std::uint32_t set : sets.of_npu) ranks.emplace_back(part[set]);
  return {std::move(ranks), num_ranks};
}

}  // namespace

Strategy metis() {
  return {.name = "metis",
          .example = "metis",
          .help = "METIS cuts the graph of which NPUs communicate in the traces, with a fixed seed",
          .needs_traces = true,
          .make = make_by_metis};
}

}  // namespace orrery::partition
