// Which nodes an NPU begins when, on its resources. The NPUs are alone; what they send is only kept.
#include <gtest/gtest.h>

#include "rank_of_npus.hpp"

namespace orrery::npu::test {
namespace {

using test_support::GraphBuilder;
using trace::NodeKind;

/// Returns the nodes of NPU 0 that are sends, in the order in which they begin.
std::vector<std::uint64_t> order_of_sends(const trace::Graph& graph, const RankOfNpus& rank) {
  std::vector<std::pair<Time, std::uint64_t>> begins;
  for (const auto& [node, span] : rank.spans())
    if (graph.nodes[node].kind == NodeKind::send) begins.emplace_back(span.start, node);
  std::ranges::sort(begins);
  std::vector<std::uint64_t> nodes;
  for (const auto& begin : begins) nodes.push_back(begin.second);
  return nodes;
}

/// Send 3 begins at 0 and holds the communication resource. While it does, send 5 becomes ready at 10 ns, send 4 at
/// 20 ns and send 6 at 30 ns. Their priorities are 1 for send 4, 9 for send 5 and 5 for send 6.
std::shared_ptr<const trace::Graph> waiting_sends() {
  GraphBuilder builder;
  builder.timed(NodeKind::compute, 10, {});
  builder.timed(NodeKind::cpu, 20, {});
  builder.timed(NodeKind::cpu, 10, {1});
  builder.message(NodeKind::send, away, {});
  builder.message(NodeKind::send, away, {1});
  builder.message(NodeKind::send, away, {0});
  builder.message(NodeKind::send, away, {2});
  auto graph = std::make_shared<trace::Graph>(*builder.build());
  graph->priorities = {0, 0, 0, 0, 1, 9, 5};
  return graph;
}

struct OrderCase {
  CommOrder order;
  std::vector<std::uint64_t> sends;
};

class CommunicationOrder : public ::testing::TestWithParam<OrderCase> {};

// Several sends wait for the communication resource. They go one after the other in the order that the option names.
TEST_P(CommunicationOrder, SaysWhichSendThatWaitsComesNext) {
  const auto graph = waiting_sends();
  Options options;
  options.comm_order = GetParam().order;
  RankOfNpus rank({graph}, options);
  rank.run();
  EXPECT_EQ(order_of_sends(*graph, rank), GetParam().sends);
  // They follow each other without a gap.
  EXPECT_EQ(rank.npus->records()[0].finish, Time::from_ps(4 * rank.delay(away).ps()));
}

INSTANTIATE_TEST_SUITE_P(All, CommunicationOrder,
                         ::testing::Values(OrderCase{CommOrder::lowest_id, {3, 4, 5, 6}},
                                           OrderCase{CommOrder::fifo, {3, 5, 4, 6}},
                                           OrderCase{CommOrder::lifo, {3, 6, 4, 5}},
                                           OrderCase{CommOrder::priority, {3, 5, 6, 4}}));

// Compute nodes 0 to 2 take 10 ns each. The compute resource has one place or two.
TEST(Nodes, AResourceTakesAsManyNodesAsItHasPlaces) {
  GraphBuilder graph;
  for (int i = 0; i < 3; ++i) graph.timed(NodeKind::compute, 10, {});
  RankOfNpus one({graph.build()});
  one.run();
  EXPECT_EQ(one.spans(),
            (std::map<std::uint64_t, Span>{{0, {ns(0), ns(10)}}, {1, {ns(10), ns(20)}}, {2, {ns(20), ns(30)}}}));
  Options options;
  options.compute_streams = 2;
  RankOfNpus two({graph.build()}, options);
  two.run();
  EXPECT_EQ(two.spans(),
            (std::map<std::uint64_t, Span>{{0, {ns(0), ns(10)}}, {1, {ns(0), ns(10)}}, {2, {ns(10), ns(20)}}}));
}

// CPU, compute and communication go on at the same time.
TEST(Nodes, ResourcesAreIndependent) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 10, {});
  graph.timed(NodeKind::cpu, 20, {});
  graph.message(NodeKind::send, away, {});
  RankOfNpus rank({graph.build()});
  rank.run();
  for (const auto& [node, span] : rank.spans()) EXPECT_EQ(span.start, ns(0)) << "node " << node;
}

// Compute nodes 0 and 2 are of stream 1, compute node 1 is of stream 2. Nodes of one stream take turns. The compute
// resource with its one place has nothing to do with them.
TEST(Nodes, NodesOfAStreamTakeTurns) {
  GraphBuilder builder;
  for (int i = 0; i < 3; ++i) builder.timed(NodeKind::compute, 10, {});
  for (std::uint32_t i = 0; i < 3; ++i) builder.node(i).stream = i == 1 ? 2 : 1;
  auto graph = std::make_shared<trace::Graph>(*builder.build());
  graph->num_streams = 2;
  RankOfNpus rank({graph});
  rank.run();
  EXPECT_EQ(rank.spans(),
            (std::map<std::uint64_t, Span>{{0, {ns(0), ns(10)}}, {1, {ns(0), ns(10)}}, {2, {ns(10), ns(20)}}}));
}

// Instant node 1 depends on compute node 0, compute node 2 on node 1. A node of no kind of work takes no time and no
// resource.
TEST(Nodes, InstantNodesAreDoneWhenTheyAreReady) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 10, {});
  graph.timed(NodeKind::instant, 99, {0});
  graph.timed(NodeKind::compute, 5, {1});
  graph.timed(NodeKind::instant, 99, {});
  RankOfNpus rank({graph.build()});
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(10)}));
  EXPECT_EQ(rank.spans().at(2), (Span{ns(10), ns(15)}));
  EXPECT_EQ(rank.spans().at(3), (Span{ns(0), ns(0)}));
  EXPECT_EQ(rank.npus->num_completed_nodes(), 4U);
}

// Compute node 1 waits for nodes 0 and 2, of which node 2 is the later one.
TEST(Nodes, ANodeWaitsForAllThatItDependsOn) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 10, {});
  graph.timed(NodeKind::cpu, 30, {});
  graph.timed(NodeKind::compute, 5, {0, 1});
  RankOfNpus rank({graph.build()});
  rank.run();
  EXPECT_EQ(rank.spans().at(2), (Span{ns(30), ns(35)}));
}

// The trace runs three times, each time when its own last node is done. Only the first two are recorded.
TEST(Nodes, ATraceRunsAsOftenAsTheOptionsSay) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 10, {});
  graph.timed(NodeKind::cpu, 5, {0});
  Options options;
  options.iterations = 3;
  options.record_iterations = 2;
  RankOfNpus rank({graph.build()}, options);
  rank.run_until(ns(44));
  EXPECT_EQ(rank.npus->num_done(), 0U);
  rank.run();
  EXPECT_EQ(rank.npus->num_done(), 1U);
  EXPECT_EQ(rank.npus->num_completed_nodes(), 6U);
  EXPECT_EQ(rank.npus->records()[0].finish, ns(45));
  const auto timeline = rank.npus->timeline();
  ASSERT_EQ(timeline.size(), 4U);
  EXPECT_EQ(timeline[3].start, ns(25));
  EXPECT_EQ(timeline[3].finish, ns(30));
}

// The speed of an NPU divides the time of compute nodes, not that of CPU nodes.
TEST(Nodes, AFasterNpuComputesInLess) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 10, {});
  graph.timed(NodeKind::cpu, 10, {});
  Options options;
  options.compute_speed = {2, 1, 1, 1};
  RankOfNpus rank({graph.build(), graph.build()}, options);
  rank.run();
  EXPECT_EQ(rank.spans(0).at(0).finish, ns(5));
  EXPECT_EQ(rank.spans(0).at(1).finish, ns(10));
  EXPECT_EQ(rank.spans(1).at(0).finish, ns(10));
}

// In a replay every node takes what was recorded, and nothing is sent.
TEST(Nodes, AReplayTakesRecordedTimes) {
  GraphBuilder builder;
  builder.message(NodeKind::send, away, {});
  builder.collective(RankOfNpus::world, trace::all_dimensions, {0});
  builder.message(NodeKind::receive, away, {1});
  auto graph = std::make_shared<trace::Graph>(*builder.build());
  graph->durations = {ns(30), ns(40), ns(50)};
  Options options;
  options.replay_only = true;
  RankOfNpus rank({graph}, options);
  rank.run();
  EXPECT_EQ(rank.npus->records()[0].finish, ns(120));
  EXPECT_TRUE(rank.kernel.sent.empty());
  EXPECT_TRUE(rank.reports.empty());
}

// Compute 10 ns, then a receive whose message never comes. The run is stopped at 100 ns: 10 ns were computation, the
// rest is time in the receive.
TEST(Nodes, TimesCountUpToTheEndOfAStoppedRun) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 10, {});
  graph.message(NodeKind::receive, away, {0});
  RankOfNpus rank({graph.build()});
  rank.run();
  rank.npus->stop(ns(100));
  const NpuRecord record = rank.npus->records()[0];
  EXPECT_EQ(record.finish, ns(100));
  EXPECT_EQ(record.compute, ns(10));
  EXPECT_EQ(record.exposed_receive, ns(90));
  EXPECT_EQ(record.nodes_completed, 1U);
  EXPECT_EQ(rank.npus->num_unfinished(), 1U);
}

}  // namespace
}  // namespace orrery::npu::test
