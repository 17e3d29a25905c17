#include "common_order.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "orrery/base/error.hpp"
#include "orrery/base/topological_order.hpp"

namespace orrery::check {
namespace {

constexpr std::uint32_t none = ~0U;

std::uint32_t num_nodes(const Calls& calls) { return static_cast<std::uint32_t>(calls.first_successor.size() - 1); }

std::span<const std::uint32_t> successors_of(const Calls& calls, std::uint32_t node) {
  const auto first = calls.first_successor[node];
  return std::span(calls.successors).subspan(first, calls.first_successor[node + 1] - first);
}

/// Returns the nodes in an order in which dependencies come first.
std::vector<std::uint32_t> topological_order(const Calls& calls) {
  std::vector<std::uint32_t> missing(num_nodes(calls));
  for (const auto successor : calls.successors) ++missing[successor];
  return orrery::topological_order(missing, [&](std::uint32_t node, auto visit) {
    for (const auto successor : successors_of(calls, node)) visit(successor);
  });
}

/// Dependencies order all collectives if and only if each has another number of them before it on its longest chain:
/// the one with k before it then depends on one with k - 1 before it, and there is only one such.
bool is_ordered(const Calls& calls) {
  std::vector<std::uint32_t> depth(num_nodes(calls));
  std::vector<char> counts(num_nodes(calls));
  for (const auto node : calls.nodes) counts[node] = 1;
  for (const auto node : topological_order(calls))
    for (const auto s : successors_of(calls, node))
      depth[s] = std::max(depth[s], depth[node] + static_cast<std::uint32_t>(counts[node]));
  std::vector<std::uint32_t> depths;
  for (const auto node : calls.nodes) depths.push_back(depth[node]);
  std::ranges::sort(depths);
  return std::ranges::adjacent_find(depths) == depths.end();
}

/// Returns for each of a.nodes the index into b.nodes of what is certainly the same collective, or `none`.
std::vector<std::uint32_t> match(const Calls& a, const Calls& b) {
  const bool ordered = is_ordered(a) && is_ordered(b);
  std::map<std::uint64_t, std::vector<std::uint32_t>> of_label;  // in b, backwards
  for (auto i = static_cast<std::uint32_t>(b.nodes.size()); i-- > 0;) of_label[b.labels[i]].push_back(i);
  std::map<std::uint64_t, std::uint32_t> in_a;
  for (const auto label : a.labels) ++in_a[label];
  std::vector<std::uint32_t> same(a.nodes.size(), none);
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const auto found = of_label.find(a.labels[i]);
    if (found == of_label.end() || found->second.empty()) continue;
    if (!ordered && (in_a[a.labels[i]] > 1 || found->second.size() > 1)) continue;
    same[i] = found->second.back();
    found->second.pop_back();
  }
  return same;
}

/// The union of both graphs, in which matched nodes are one vertex: a's nodes, then those of b that are not matched.
class Joined {
 public:
  Joined(const Calls& a, const Calls& b) : calls_{&a, &b} {
    const auto same = match(a, b);
    vertex_of_b_.assign(num_nodes(b), none);
    b_of_.assign(num_nodes(a), none);
    call_of_[0].assign(num_nodes(a), none);
    call_of_[1].assign(num_nodes(a), none);
    for (std::uint32_t i = 0; i < same.size(); ++i) {
      if (same[i] == none) continue;
      vertex_of_b_[b.nodes[same[i]]] = a.nodes[i];
      b_of_[a.nodes[i]] = b.nodes[same[i]];
      call_of_[0][a.nodes[i]] = i;
      call_of_[1][a.nodes[i]] = same[i];
    }
    for (std::uint32_t node = 0; node < vertex_of_b_.size(); ++node) {
      if (vertex_of_b_[node] != none) continue;
      vertex_of_b_[node] = static_cast<std::uint32_t>(b_of_.size());
      b_of_.push_back(node);
    }
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(b_of_.size()); }
  /// Calls visit(successor, whether the dependency is of the second member).
  template <class Visit>
  void for_each_successor(std::uint32_t vertex, Visit visit) const {
    if (vertex < num_nodes(*calls_[0]))
      for (const auto s : successors_of(*calls_[0], vertex)) visit(s, false);
    if (b_of_[vertex] != none)
      for (const auto s : successors_of(*calls_[1], b_of_[vertex])) visit(vertex_of_b_[s], true);
  }
  /// Returns the collective of a matched vertex.
  std::uint32_t call(std::uint32_t vertex, bool of_second) const { return call_of_[of_second ? 1 : 0][vertex]; }

 private:
  std::array<const Calls*, 2> calls_;
  std::vector<std::uint32_t> vertex_of_b_;             // [b's nodes]
  std::vector<std::uint32_t> b_of_;                    // [vertices]
  std::array<std::vector<std::uint32_t>, 2> call_of_;  // [a's nodes]
};

struct Step {
  std::uint32_t from = none, to = none;
  bool of_second = false;
};

/// Returns a cycle, in which each step begins where the one before it ended; empty if there is none.
std::vector<Step> find_cycle(const Joined& graph) {
  std::vector<std::uint32_t> missing(graph.size());
  for (std::uint32_t v = 0; v < graph.size(); ++v) graph.for_each_successor(v, [&](auto s, bool) { ++missing[s]; });
  orrery::topological_order(
      missing, [&](std::uint32_t v, auto visit) { graph.for_each_successor(v, [&](auto s, bool) { visit(s); }); });
  // Each vertex that remains has a predecessor that remains, so following predecessors reaches a vertex seen before.
  std::vector<Step> into(graph.size());
  std::uint32_t at = none;
  for (std::uint32_t v = 0; v < graph.size(); ++v) {
    if (missing[v] == 0) continue;
    at = v;
    graph.for_each_successor(v, [&](auto s, bool of_second) {
      if (missing[s] > 0) into[s] = {v, s, of_second};
    });
  }
  if (at == none) return {};
  std::vector<char> seen(graph.size());
  for (; !seen[at]; at = into[at].from) seen[at] = 1;
  std::vector<Step> cycle;
  for (auto v = at; cycle.empty() || v != at; v = into[v].from) cycle.push_back(into[v]);
  std::ranges::reverse(cycle);
  return cycle;
}

}  // namespace

std::vector<Before> find_contradiction(const Calls& a, const Calls& b) {
  const Joined graph(a, b);
  auto cycle = find_cycle(graph);
  if (cycle.empty()) return {};
  // Neither member's graph has a cycle, so the steps pass from one member to the other, at matched vertices.
  const auto turn = std::ranges::adjacent_find(
      cycle, [](const Step& step, const Step& next) { return step.of_second != next.of_second; });
  orrery::ensure(turn != cycle.end(), "a cycle within the trace of one NPU");
  std::ranges::rotate(cycle, turn + 1);
  std::vector<Before> steps;
  for (std::size_t i = 0; i < cycle.size();) {
    const auto first = i;
    while (i < cycle.size() && cycle[i].of_second == cycle[first].of_second) ++i;
    const bool second = cycle[first].of_second;
    steps.push_back({second, graph.call(cycle[first].from, second), graph.call(cycle[i - 1].to, second)});
  }
  return steps;
}

}  // namespace orrery::check
