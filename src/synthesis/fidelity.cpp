#include "orrery/synthesis/fidelity.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery::synthesis {
namespace {

using trace::NodeKind;

constexpr std::size_t most_compared = 8;     // NPUs
constexpr std::size_t num_quantiles = 1000;  // of sizes that are compared

/// Kind, collective (-1: none), members and distance of the group, direction of the peer.
using ComparedKind = std::tuple<NodeKind, int, std::size_t, std::int64_t, int>;

/// What is compared of the trace of one NPU.
struct ComparedTrace {
  std::map<ComparedKind, double> counts;
  std::map<std::tuple<NodeKind, int, int>, std::vector<double>> sizes;  ///< logarithms, ascending, by kind and field
  double num_nodes = 0, depth = 0;
  std::vector<std::uint32_t> in, out;  ///< degrees of the nodes, ascending
};

int compared_collective(const trace::Node& node) { return node.is_of_group() ? static_cast<int>(node.collective) : -1; }

ComparedKind compared_kind(const TraceSet& set, std::size_t npu, const trace::Node& node) {
  const trace::NpuTrace& trace = set.traces[npu];
  const bool is_message = node.kind == NodeKind::send || node.kind == NodeKind::receive;
  std::size_t size = 0;
  std::int64_t distance = 0;
  if (node.is_of_group()) {
    const auto& members = set.store.groups()[trace.groups[node.slot].index()].members;
    size = members.empty() ? set.traces.size() : members.size();
    distance = members.size() > 1 ? std::int64_t{members[1].value()} - std::int64_t{members[0].value()} : 1;
  }
  const int direction = !is_message ? 0 : trace.peers[node.slot].index() > npu ? 1 : -1;
  return {node.kind, compared_collective(node), size, distance, direction};
}

double depth_of(const trace::Graph& graph) {
  std::vector<std::uint32_t> depth(graph.num_nodes(), 1);
  std::uint32_t most = 0;
  for (const std::uint32_t node : graph.topological_order()) {
    most = std::max(most, depth[node]);
    for (const std::uint32_t successor : graph.successors_of(NodeId(node)))
      depth[successor] = std::max(depth[successor], depth[node] + 1);
  }
  return most;
}

ComparedTrace compared_trace(const TraceSet& set, std::size_t npu) {
  const trace::Graph& graph = *set.traces[npu].graph;
  ComparedTrace result;
  result.num_nodes = graph.num_nodes();
  result.depth = depth_of(graph);
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const trace::Node& node = graph.nodes[i];
    ++result.counts[compared_kind(set, npu, node)];
    const double flops = node.kind == NodeKind::compute ? static_cast<double>(node.detail) : 0;
    const auto ps = static_cast<double>(graph.duration_of(NodeId(i)).ps());
    int field = 0;
    for (const double size : {flops, static_cast<double>(node.size), ps})
      if (const int own = field++; size > 0)
        result.sizes[{node.kind, compared_collective(node), own}].push_back(std::log10(size));
    result.in.push_back(node.num_dependencies);
    result.out.push_back(static_cast<std::uint32_t>(graph.successors_of(NodeId(i)).size()));
  }
  for (auto& [kind, logarithms] : result.sizes) std::ranges::sort(logarithms);
  std::ranges::sort(result.in);
  std::ranges::sort(result.out);
  return result;
}

double total_variation(const ComparedTrace& a, const ComparedTrace& b) {
  auto difference = a.counts;
  for (auto& [kind, count] : difference) count /= a.num_nodes;
  for (const auto& [kind, count] : b.counts) difference[kind] -= count / b.num_nodes;
  double sum = 0;
  for (const auto& [kind, share] : difference) sum += std::abs(share);
  return sum / 2;
}

/// Returns a quantile of ascending numbers, between two of them in proportion.
double quantile_of(const std::vector<double>& numbers, double part) {
  const double place = part * static_cast<double>(numbers.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, numbers.size() - 1);
  return std::lerp(numbers[below], numbers[above], place - static_cast<double>(below));
}

/// Returns the mean over the kinds that both have, by their numbers of sizes in `input`.
double wasserstein(const ComparedTrace& made, const ComparedTrace& input) {
  double sum = 0, weight = 0;
  for (const auto& [kind, expected] : input.sizes) {
    const auto found = made.sizes.find(kind);
    if (found == made.sizes.end()) continue;
    double distance = 0;
    for (std::size_t i = 0; i < num_quantiles; ++i) {
      const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(num_quantiles);
      distance += std::abs(quantile_of(expected, part) - quantile_of(found->second, part));
    }
    const auto number = static_cast<double>(expected.size());
    sum += number * distance / static_cast<double>(num_quantiles);
    weight += number;
  }
  return weight > 0 ? sum / weight : 0;
}

/// Returns the largest difference of the distributions of two lists, ascending, none of them empty.
double smirnov(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  double most = 0;
  const auto part = [](const std::vector<std::uint32_t>& numbers, std::uint32_t limit) {
    return static_cast<double>(std::ranges::upper_bound(numbers, limit) - numbers.begin()) /
           static_cast<double>(numbers.size());
  };
  for (const auto* const list : {&a, &b})
    for (auto at = list->begin(); at != list->end(); at = std::upper_bound(at, list->end(), *at))
      most = std::max(most, std::abs(part(a, *at) - part(b, *at)));
  return most;
}

}  // namespace

Fidelity fidelity_of(const TraceSet& made, const TraceSet& input) {
  ensure(made.traces.size() == input.traces.size(), "sets of traces that are compared have the same NPUs");
  std::set<std::size_t> npus;
  for (std::size_t i = 0; i < most_compared; ++i)
    npus.insert((i * (input.traces.size() - 1) + (most_compared - 1) / 2) / (most_compared - 1));
  Fidelity worst;
  for (const std::size_t npu : npus) {
    const ComparedTrace a = compared_trace(made, npu), b = compared_trace(input, npu);
    if (a.num_nodes == 0 || b.num_nodes == 0) continue;
    worst.counts = std::max(worst.counts, total_variation(a, b));
    worst.sizes = std::max(worst.sizes, wasserstein(a, b));
    worst.depth = std::max(worst.depth, std::abs(a.depth / b.depth - 1));
    worst.degrees = std::max({worst.degrees, smirnov(a.in, b.in), smirnov(a.out, b.out)});
  }
  return worst;
}

}  // namespace orrery::synthesis
