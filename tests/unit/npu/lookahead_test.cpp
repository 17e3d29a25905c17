#include "lookahead.hpp"

#include <gtest/gtest.h>

#include <random>

#include "fake_links.hpp"
#include "graph_builder.hpp"

namespace orrery::npu {
namespace {

using orrery::test_support::GraphBuilder;
using trace::NodeKind;

constexpr Time ns(std::int64_t count) { return Time::from_ns(count); }
constexpr Time zero = Time::zero();
constexpr Time never = Time::max();

/// NPU 0 of four, on rank 0 with NPU 1; NPUs 2 and 3 are on rank 1. Group 0 is the world, group 1 NPUs 0 and 1. Peer
/// slots 0 and 1 are NPUs 1 and 2. Nothing that stays on rank 0 is noticed.
class LookaheadTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t here = 0, away = 1;         // peer slots
  static constexpr std::uint32_t world = 0, neighbours = 1;  // group slots

  Lookahead find(const GraphBuilder& graph, memory::RemoteMemoryKind memory_kind = memory::RemoteMemoryKind("none")) {
    const memory::RemoteMemory memory({memory_kind, Bandwidth::from_bytes_per_ns(1), 0, 0}, 4);
    program_ = make_program(graph.build(), options_, {1});
    trace_.graph = program_.graph;
    trace_.peers = {NpuId(1), NpuId(2)};
    NpuSpec npu{NpuId(0), &trace_, &program_, {}};
    for (const auto& use : program_.uses) npu.groups.emplace_back(use.group_slot);
    npus_ = {npu, npu};
    npus_[1].id = NpuId(1);
    const std::vector<Rank> hosts{Rank(0), Rank(0), Rank(1), Rank(1)};
    const std::vector<Rank> servers{server_};
    const trace::Group all{}, pair{"pair", {NpuId(0), NpuId(1)}};
    const std::vector<communicator::CommunicatorSpec> communicators{
        {GroupId(0), &all, trace::all_dimensions, 0, Rank(0)}, {GroupId(1), &pair, trace::all_dimensions, 0, Rank(0)}};
    npu::RunContext run{options_, delays_, memory, engine_, communicators, npus_, {Rank(0), hosts, servers}, {}};
    run.links = options_.goes_over_links() ? &network_ : nullptr;
    run.cell_of = cell_of_;
    return Lookaheads(run).of(npus_[0]);
  }

  /// Compute 5, send to NPU 1, collective of NPUs 0 and 1, compute 6, send to NPU 2.
  static GraphBuilder chain_of_partners() {
    GraphBuilder graph;
    graph.timed(NodeKind::compute, 5, {});
    graph.message(NodeKind::send, here, {0});
    graph.collective(neighbours, trace::all_dimensions, {1});
    graph.timed(NodeKind::compute, 6, {2});
    graph.message(NodeKind::send, away, {3});
    return graph;
  }

  /// Lets messages go over links. Those among `kept` pass no links of other NPUs.
  void go_over_links(const std::vector<NpuId>& kept) {
    options_.network.model = network::ModelName("congestion-aware");
    network_.kept = kept;
  }

  Options options_;
  Rank server_ = Rank(1);
  test::FakeNetwork network_;
  std::vector<std::uint32_t> cell_of_;

 private:
  network::DelayModel delays_{
      topology::Topology({{topology::Shape("Ring"), 4, Bandwidth::from_bytes_per_ns(50), 500}})};
  collective::Engine engine_{delays_, {}};
  Program program_;
  trace::NpuTrace trace_;
  std::vector<NpuSpec> npus_;
};

// Compute 5, compute 7, collective: 7 after the first completes, 0 after the second.
TEST_F(LookaheadTest, ComputeTimesOfAChainAddUp) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 5, {});
  graph.timed(NodeKind::cpu, 7, {0});
  graph.collective(world, trace::all_dimensions, {1});
  const auto found = find(graph);
  EXPECT_EQ(found.calls.tails, (std::vector{ns(7), zero, never}));
  EXPECT_EQ(found.calls.leads, (std::vector{ns(12), ns(7), zero}));
}

// Compute nodes take as long as they do on the fastest NPU, with the least noise: a bound for every NPU.
TEST_F(LookaheadTest, TheFastestNpuCounts) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 5, {});
  graph.timed(NodeKind::cpu, 7, {0});
  graph.timed(NodeKind::compute, 20, {1});
  graph.collective(world, trace::all_dimensions, {2});
  options_.compute_speed = {0.5, 2, 1, 1};
  EXPECT_EQ(find(graph).calls.tails, (std::vector{ns(17), ns(10), zero, never}));
  options_.noise.amplitude = 0.5;
  EXPECT_EQ(find(graph).calls.tails, (std::vector{Time::from_ps(8500), ns(5), zero, never}));
  options_.noise.variations.add({DrawnPer::step, 8, {.kind = DistributionKind::uniform, .least = 0.5}});
  options_.noise.variations.add({DrawnPer::node, 8, {.kind = DistributionKind::values, .values = {0.8, 2}}});
  EXPECT_EQ(find(graph).calls.tails, (std::vector{Time::from_ps(3400), ns(2), zero, never}));
  options_.noise.variations = {};
  options_.compute_speed = {0.5, 0.5, 0.25, 0.5};
  options_.noise.amplitude = 0;
  EXPECT_EQ(find(graph).calls.tails, (std::vector{ns(47), ns(40), zero, never}));
}

// Both branches end in the collective, which waits for the longer one.
TEST_F(LookaheadTest, BranchesThatMeetCountByTheLonger) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 1, {});
  graph.timed(NodeKind::compute, 5, {0});
  graph.timed(NodeKind::compute, 9, {0});
  graph.collective(world, trace::all_dimensions, {1, 2});
  EXPECT_EQ(find(graph).calls.tails, (std::vector{ns(9), zero, zero, never}));
}

// Two sends: the nearer one counts.
TEST_F(LookaheadTest, BranchesThatPartCountByTheShorter) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 1, {});
  graph.timed(NodeKind::compute, 5, {0});
  graph.message(NodeKind::send, away, {1});
  graph.timed(NodeKind::compute, 3, {0});
  graph.message(NodeKind::send, away, {3});
  const auto found = find(graph);
  EXPECT_EQ(found.sends.tails[0], ns(3));
  EXPECT_EQ(found.sends.leads[0], ns(4));
}

// Messages and collectives are looked for apart, each past the other: a send 9 after the collective is 16 after the
// start.
TEST_F(LookaheadTest, SendsAndCallsAreFoundApart) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 7, {});
  graph.collective(world, trace::all_dimensions, {0});
  graph.timed(NodeKind::compute, 9, {1});
  graph.message(NodeKind::send, away, {2});
  const auto found = find(graph);
  EXPECT_EQ(found.calls.leads, (std::vector{ns(7), zero, never, never}));
  EXPECT_EQ(found.sends.leads, (std::vector{ns(16), ns(9), ns(9), zero}));
}

// A compute node follows the only send. Other ranks notice nothing after the send.
TEST_F(LookaheadTest, NothingIsNoticedAfterTheLastCommunication) {
  GraphBuilder graph;
  graph.message(NodeKind::send, away, {});
  graph.timed(NodeKind::compute, 8, {0});
  const auto found = find(graph);
  EXPECT_EQ(found.sends.tails, (std::vector{never, never}));
  EXPECT_EQ(found.sends.leads, (std::vector{zero, never}));
}

// What stays on the rank takes 0 at least and hides nothing behind it.
TEST_F(LookaheadTest, PartnersOnTheSameRankAreNotNoticed) {
  const GraphBuilder graph = chain_of_partners();
  const auto found = find(graph);
  EXPECT_EQ(found.sends.tails, (std::vector{ns(6), ns(6), ns(6), zero, never}));
  EXPECT_EQ(found.sends.leads, (std::vector{ns(11), ns(6), ns(6), ns(6), zero}));
}

// An eager receive tells nobody; with rendezvous its word goes to the sender.
TEST_F(LookaheadTest, ReceivesAreNoticedWithRendezvousOnly) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 5, {});
  graph.message(NodeKind::receive, away, {0});
  graph.timed(NodeKind::compute, 4, {1});
  graph.message(NodeKind::send, away, {2});
  EXPECT_EQ(find(graph).sends.tails, (std::vector{ns(4), ns(4), zero, never}));
  options_.rendezvous = true;
  EXPECT_EQ(find(graph).sends.tails, (std::vector{zero, ns(4), zero, never}));
}

// Messages over links are noticed unless all links of their ways are here: after the compute node of 6 ns then, or at
// once.
TEST_F(LookaheadTest, MessagesOverLinksOfThisRankAreNotNoticed) {
  const GraphBuilder graph = chain_of_partners();
  go_over_links({NpuId(0), NpuId(1)});
  const auto kept = find(graph);
  EXPECT_EQ(kept.relays->tails, (std::vector{ns(6), ns(6), ns(6), zero, never}));
  EXPECT_EQ(kept.scope_of(NodeId(1)), pdes::Scope::rank);
  EXPECT_EQ(kept.scope_of(NodeId(2)), pdes::Scope::rank);
  EXPECT_EQ(kept.scope_of(NodeId(4)), pdes::Scope::anywhere);
  EXPECT_FALSE(kept.leaves) << "there is one cell";
  go_over_links({});
  const auto passed = find(graph);
  EXPECT_EQ(passed.relays->tails, (std::vector{zero, zero, ns(6), zero, never}));
  EXPECT_EQ(passed.scope_of(NodeId(1)), pdes::Scope::anywhere);
  EXPECT_EQ(passed.scope_of(NodeId(2)), pdes::Scope::anywhere);
}

// With cells the same holds for a cell, where it holds for the rank: NPUs 0 and 1 are in one, or in two.
TEST_F(LookaheadTest, MessagesWithinACellDoNotLeaveIt) {
  const GraphBuilder graph = chain_of_partners();
  go_over_links({NpuId(0), NpuId(1)});
  cell_of_ = {1, 1, 0, 0};
  const auto one = find(graph);
  EXPECT_EQ(one.leaves->tails, (std::vector{ns(6), ns(6), ns(6), zero, never}));
  EXPECT_EQ(one.scope_of(NodeId(1)), pdes::Scope::cell);
  EXPECT_EQ(one.scope_of(NodeId(2)), pdes::Scope::cell);
  EXPECT_EQ(one.scope_of(NodeId(4)), pdes::Scope::anywhere);
  cell_of_ = {0, 1, 0, 0};
  const auto two = find(graph);
  EXPECT_EQ(two.leaves->tails, (std::vector{zero, zero, ns(6), zero, never}));
  EXPECT_EQ(two.relays->tails, one.relays->tails);
  EXPECT_EQ(two.scope_of(NodeId(1)), pdes::Scope::rank);
  EXPECT_EQ(two.scope_of(NodeId(2)), pdes::Scope::rank);
}

// A memory pool is served by one rank, here the other one; memory of the NPU's own by nobody else.
TEST_F(LookaheadTest, AccessesAreNoticedByASharedServer) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 5, {});
  graph.timed(NodeKind::mem_load, 0, {0});
  EXPECT_EQ(find(graph, memory::RemoteMemoryKind("pool")).calls.tails, (std::vector{zero, never}));
  EXPECT_EQ(find(graph, memory::RemoteMemoryKind("per-npu")).calls.tails, (std::vector{never, never}));
}

// A server of this rank answers all members of the group: those of other ranks notice it.
TEST_F(LookaheadTest, AccessesOfAGroupAreNoticedByItsMembers) {
  const auto tail = [&](bool of_group, std::uint32_t group) {
    GraphBuilder graph;
    graph.timed(NodeKind::compute, 5, {});
    graph.timed(NodeKind::mem_load, 0, {0});
    graph.node(1).slot = group;
    graph.node(1).detail = of_group ? trace::all_dimensions : 0;
    return find(graph, memory::RemoteMemoryKind("pool")).calls.tails.front();
  };
  server_ = Rank(0);
  EXPECT_EQ(tail(false, world), never);
  EXPECT_EQ(tail(true, neighbours), never);
  EXPECT_EQ(tail(true, world), zero);
  server_ = Rank(1);
  EXPECT_EQ(tail(true, neighbours), zero);
}

// A trace with a collective is replayed. Nothing is communicated, so other ranks notice nothing.
TEST_F(LookaheadTest, ReplayedTracesAreNotNoticed) {
  options_.replay_only = true;
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 5, {});
  graph.collective(world, trace::all_dimensions, {0});
  EXPECT_EQ(find(graph).calls.tails, (std::vector{never, never}));
}

bool is_away(const trace::Node& node) { return node.kind == NodeKind::send && node.slot == 1; }

/// When the rest of a graph can start at the earliest, if `node` completes at 0 and what does not depend on it was done
/// before. Resources have no limit, so no execution is faster. `through_noticed`: noticed nodes release others.
std::vector<Time> earliest_starts(const Program& program, std::uint32_t node, bool through_noticed) {
  const auto& graph = *program.graph;
  std::vector<Time> start(graph.num_nodes(), never);
  const auto release = [&](std::uint32_t from, Time done) {
    for (const auto s : graph.successors_of(NodeId(from)))
      start[s] = start[s] == never ? done : std::max(start[s], done);
  };
  release(node, zero);
  for (std::uint32_t i = node + 1; i < graph.num_nodes(); ++i)
    if (start[i] != never && (through_noticed || !is_away(graph.nodes[i]))) release(i, start[i] + program.durations[i]);
  return start;
}

Time earliest_noticed(const Program& program, std::uint32_t node, bool through_noticed) {
  const auto starts = earliest_starts(program, node, through_noticed);
  Time earliest = never;
  for (std::uint32_t i = 0; i < starts.size(); ++i)
    if (is_away(program.graph->nodes[i])) earliest = std::min(earliest, starts[i]);
  return earliest;
}

/// A random graph of computation and sends, some of them to the other rank.
GraphBuilder random_graph(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  GraphBuilder graph;
  const std::uint32_t n = 2 + below(30);
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto add = [&](GraphBuilder::Ids after) {
      if (below(5) == 0)
        graph.message(NodeKind::send, below(2), after);
      else
        graph.timed(below(2) == 0 ? NodeKind::compute : NodeKind::cpu, 1 + below(20), after);
    };
    const std::uint32_t a = i > 0 ? below(i) : 0, b = i > 0 ? below(i) : 0;
    if (i == 0 || below(6) == 0)
      add({});
    else if (a == b || below(2) == 0)
      add({a});
    else
      add({a, b});
  }
  return graph;
}

// The property that promises rest on: whatever else is done, nothing is noticed earlier than a completion plus its
// tail. The tail is the longest path to the nearest noticed node, of the paths that no other noticed node is on.
TEST_F(LookaheadTest, NothingIsNoticedBeforeTheTail) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto graph = random_graph(random);
    const auto found = find(graph);
    const auto& program = *found.program;
    for (std::uint32_t node = 0; node < program.graph->num_nodes(); ++node) {
      EXPECT_LE(found.sends.tail(NodeId(node)), earliest_noticed(program, node, true))
          << "round " << round << " node " << node;
      EXPECT_EQ(found.sends.tail(NodeId(node)), earliest_noticed(program, node, false))
          << "round " << round << " node " << node;
      const bool away_itself = is_away(program.graph->nodes[node]);
      EXPECT_EQ(found.sends.lead(NodeId(node)),
                away_itself ? zero : program.durations[node] + found.sends.tail(NodeId(node)));
    }
  }
}

}  // namespace
}  // namespace orrery::npu
