#include "orrery/npu/concurrency.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "orrery/trace/builder.hpp"

namespace orrery::npu {
namespace {

using trace::NodeKind;

constexpr std::uint32_t no_limit = 1000;

/// A node that waits for others.
NodeId collective(trace::Builder& builder, const std::vector<NodeId>& after) {
  return builder.collective("c", trace::CollectiveKind::all_reduce, Bytes(8), 0, after);
}
NodeId compute(trace::Builder& builder, const std::vector<NodeId>& after) {
  return builder.compute("x", 1, Bytes(1), after);
}

std::uint32_t at_once(const trace::Graph& graph, std::uint32_t streams = no_limit) {
  std::vector<char> counts;
  for (std::uint32_t node = 0; node < graph.num_nodes(); ++node)
    counts.push_back(graph.nodes[node].kind == NodeKind::collective);
  return most_at_once(graph, streams, counts);
}

// Two collectives follow each other, or three follow one. At most one runs at a time in the row, and in the fork as
// many as there are streams, up to three.
TEST(Concurrency, RowsAndForks) {
  trace::Builder row;
  collective(row, {compute(row, {collective(row, {})})});
  EXPECT_EQ(at_once(row.finish().graph), 1u);
  trace::Builder fork;
  const NodeId start = collective(fork, {});
  for (int k = 0; k < 3; ++k) collective(fork, {start});
  const trace::Graph graph = fork.finish().graph;
  EXPECT_EQ(at_once(graph), 3u);
  EXPECT_EQ(at_once(graph, 2), 2u);
  EXPECT_EQ(at_once(graph, 1), 1u);
}

// 20,000 collectives follow each other, or stand apart, and the streams have no limit. The bound is found in time that
// does not depend on the number of streams.
TEST(Concurrency, CostsWhatIsThere) {
  trace::Builder row, apart;
  std::vector<NodeId> last;
  for (int k = 0; k < 20000; ++k) last = {collective(row, last)};
  EXPECT_EQ(at_once(row.finish().graph, ~0U), 1u);
  for (int k = 0; k < 20000; ++k) collective(apart, {});
  EXPECT_EQ(at_once(apart.finish().graph, ~0U), 20000u);
}

/// The largest set of collectives of which no two are in one stream, or one after the other.
std::uint32_t width(const trace::Graph& graph) {
  const std::uint32_t n = graph.num_nodes();
  std::vector<std::uint32_t> excludes(n);  // bits of nodes
  const auto order = graph.topological_order();
  for (auto node = order.rbegin(); node != order.rend(); ++node)
    for (const std::uint32_t next : graph.successors_of(NodeId(*node))) excludes[*node] |= 1U << next | excludes[next];
  std::uint32_t most = 0;
  for (std::uint32_t set = 1; set < 1U << n; ++set) {
    bool is_possible = true;
    for (std::uint32_t i = 0; i < n && is_possible; ++i) {
      if ((set >> i & 1U) == 0) continue;
      is_possible = graph.nodes[i].kind == NodeKind::collective && (excludes[i] & set) == 0;
      for (std::uint32_t j = i + 1; j < n && graph.nodes[i].stream > 0; ++j)
        if ((set >> j & 1U) != 0 && graph.nodes[i].stream == graph.nodes[j].stream) is_possible = false;
    }
    if (is_possible) most = std::max(most, static_cast<std::uint32_t>(std::popcount(set)));
  }
  return most;
}

// 300 random graphs have ten nodes, some of them streams. The bound is never below the largest set of collectives that
// can run together, and is exact for more than half of the graphs.
TEST(Concurrency, BoundsTheWidth) {
  std::mt19937 random(3);
  int exact = 0;
  constexpr int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    trace::Builder builder;
    for (std::uint32_t id = 0; id < 10; ++id) {
      std::vector<NodeId> after;
      for (std::uint32_t before = 0; before < id; ++before)
        if (random() % 5 == 0) after.emplace_back(before);
      random() % 3 == 0 ? compute(builder, after) : collective(builder, after);
    }
    trace::Graph graph = builder.finish().graph;
    const bool has_streams = round % 3 == 0;
    graph.num_streams = has_streams ? 3 : 0;
    for (std::uint32_t id = 0; id < 10 && has_streams; ++id)
      graph.nodes[id].stream = static_cast<std::uint16_t>(random() % 3 + 1);
    const std::uint32_t wide = std::max(1U, width(graph));
    const std::uint32_t bound = at_once(graph);
    EXPECT_GE(bound, wide);
    if (!has_streams && bound <= 2) {
      EXPECT_EQ(bound, wide);
    }
    EXPECT_LE(bound, 10u);
    exact += bound == wide ? 1 : 0;
  }
  EXPECT_GT(exact, rounds / 2);
}

}  // namespace
}  // namespace orrery::npu
