// Collectives and accesses to remote memory of NPUs, and what the kernel is told about the future. The test plays the
// hosts of communicators and the memory servers.
#include <gtest/gtest.h>

#include "rank_of_npus.hpp"

namespace orrery::npu::test {
namespace {

using test_support::GraphBuilder;
using trace::NodeKind;

constexpr Time never = Time::max();

/// Compute node 0 takes `compute` ns. Collective 1 of a group follows.
std::shared_ptr<const trace::Graph> collective_after(std::int64_t compute, std::uint32_t group_slot) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, compute, {});
  graph.collective(group_slot, trace::all_dimensions, {0});
  return graph.build();
}

// NPUs 0 and 1 join at 10 ns and at 20 ns. They complete when the host says so.
TEST(Collectives, AMemberCompletesWhenTheHostSaysSo) {
  RankOfNpus rank({collective_after(10, RankOfNpus::pair), collective_after(20, RankOfNpus::pair)});
  rank.run();
  ASSERT_EQ(rank.reports.size(), 1U);
  EXPECT_EQ(rank.reports[0].times, (std::vector{ns(10), ns(20)}));
  EXPECT_TRUE(rank.npus->awaits(NpuId(0)).here) << "the other member is on this rank";
  EXPECT_FALSE(rank.npus->awaits(NpuId(0)).replies) << "the host is too";
  auto report = rank.reports[0].report;
  report.size = Bytes(512);  // sent by each member
  rank.complete(report, {ns(100), ns(110)});
  EXPECT_FALSE(rank.npus->awaits(NpuId(0)).anything());
  rank.run();
  EXPECT_EQ(rank.spans(0).at(1), (Span{ns(10), ns(100)}));
  EXPECT_EQ(rank.spans(1).at(1), (Span{ns(20), ns(110)}));
  EXPECT_EQ(rank.npus->records()[0].bytes_sent, Bytes(512));
  EXPECT_EQ(rank.npus->num_done(), 2U);
}

// The host of the world, and some of its members, are on the other rank.
TEST(Collectives, AMemberAwaitsTheReplyOfAnotherRank) {
  RankOfNpus rank({collective_after(10, RankOfNpus::world)});
  rank.run();
  EXPECT_TRUE(rank.npus->awaits(NpuId(0)).replies);
  EXPECT_FALSE(rank.npus->awaits(NpuId(0)).here) << "no other member is on this rank";
  const auto waits = rank.npus->waits();
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_TRUE(waits[0].in_collective);
  EXPECT_EQ(waits[0].group, GroupId(0));
  EXPECT_EQ(waits[0].members, 4U);
  EXPECT_EQ(waits[0].since, ns(10));
}

memory::RemoteMemoryOptions memory_of(memory::RemoteMemoryKind kind) {
  return {kind, Bandwidth::from_bytes_per_ns(40), 150.5, 0};
}

/// Two loads of 4000 bytes, each of which takes 250.5 ns.
std::shared_ptr<const trace::Graph> two_loads() {
  GraphBuilder graph;
  for (std::uint32_t i = 0; i < 2; ++i) {
    graph.timed(NodeKind::mem_load, 0, {});
    graph.node(i).size = 4000;
  }
  return graph.build();
}

// The communication resource has two places, so both loads begin at 0. A memory of the NPU's own serves one at a time,
// or lets each have all of its bandwidth.
TEST(Accesses, AMemoryOfTheNpusOwnServesOneAtATimeIfItTakesTurns) {
  Options options;
  options.comm_streams = 2;
  for (const bool takes_turns : {true, false}) {
    auto memory = memory_of(memory::RemoteMemoryKind("per-npu"));
    memory.own_memory_takes_turns = takes_turns;
    RankOfNpus rank({two_loads()}, options, memory);
    rank.run();
    EXPECT_EQ(rank.spans().at(0), (Span{ns(0), Time::from_ps(250'500)}));
    EXPECT_EQ(rank.spans().at(1), (Span{ns(0), takes_turns ? ns(501) : Time::from_ps(250'500)}));
  }
}

// The server of a pool is on the other rank. The NPU asks it and goes on when the answer says so.
TEST(Accesses, ASharedMemoryAnswersARequest) {
  RankOfNpus rank({two_loads()}, {}, memory_of(memory::RemoteMemoryKind("pool")));
  rank.run();
  ASSERT_EQ(rank.kernel.sent.size(), 1U);
  const pdes::Event request = rank.kernel.sent[0].event;
  EXPECT_EQ(rank.kernel.sent[0].to, Rank(1));
  EXPECT_EQ(request.target, rank.first_server());
  EXPECT_EQ(request.stage(), pdes::Stage::server);
  EXPECT_EQ(request.time, ns(0));
  EXPECT_EQ(request.detail, 4000U);
  EXPECT_TRUE(rank.npus->awaits(NpuId(0)).replies);
  rank.answer(request, ns(300));
  EXPECT_FALSE(rank.npus->awaits(NpuId(0)).anything());
  rank.run();
  EXPECT_EQ(rank.spans().at(0), (Span{ns(0), ns(300)}));
  ASSERT_EQ(rank.kernel.sent.size(), 2U);
  EXPECT_EQ(rank.kernel.sent[1].event.time, ns(300)) << "the second load waits for the resource";
}

// Compute 5 ns, then a send. Before the NPU has begun its first nodes, anything may be sent at once.
TEST(Bounds, WhatIsUnderWayBoundsTheNextSend) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 5, {});
  graph.message(NodeKind::send, away, {0});
  RankOfNpus rank({graph.build()});
  EXPECT_EQ(rank.npus->lookahead().sends.output, Time::zero());
  rank.step();
  const auto bounds = rank.npus->lookahead();
  EXPECT_EQ(bounds.sends.output, ns(5));
  EXPECT_EQ(bounds.sends.reaction, never);
  EXPECT_EQ(bounds.calls.output, never);
  rank.run();
  EXPECT_EQ(rank.npus->lookahead().sends.output, never) << "nothing is left to be sent";
}

// A receive, then compute 7 ns, then a send. While the message is unknown, the send comes 7 ns after it at the
// earliest. When it is known that it comes at 600 ns, the send comes at 607 ns at the earliest.
TEST(Bounds, AReceiveBoundsWhatFollowsIt) {
  GraphBuilder graph;
  graph.message(NodeKind::receive, away, {});
  graph.timed(NodeKind::compute, 7, {0});
  graph.message(NodeKind::send, away, {1});
  RankOfNpus rank({graph.build()});
  rank.step();
  EXPECT_EQ(rank.npus->lookahead().sends.output, never);
  EXPECT_EQ(rank.npus->lookahead().sends.reaction, ns(7));
  rank.deliver_message(away, 0, ns(600));
  EXPECT_EQ(rank.npus->lookahead().sends.output, ns(607));
  EXPECT_EQ(rank.npus->lookahead().sends.reaction, never);
}

// A collective whose end is not known, then compute 9 ns, then a send. A send that is ready for the same resource may
// come as soon as the collective ends.
TEST(Bounds, ACollectiveBoundsWhatFollowsItAndWhatWaitsForItsPlace) {
  for (const bool another_waits : {false, true}) {
    GraphBuilder graph;
    graph.collective(RankOfNpus::world, trace::all_dimensions, {});
    graph.timed(NodeKind::compute, 9, {0});
    graph.message(NodeKind::send, away, {1});
    if (another_waits) graph.message(NodeKind::send, away, {});
    RankOfNpus rank({graph.build()});
    rank.step();
    EXPECT_EQ(rank.npus->lookahead().sends.reaction, another_waits ? Time::zero() : ns(9));
    EXPECT_EQ(rank.npus->lookahead().sends.output, never);
  }
}

// A send that waits for its clear to send sends its data as soon as the clear to send is there.
TEST(Bounds, ASendThatWaitsForItsClearToSendMayActAtOnce) {
  GraphBuilder graph;
  graph.message(NodeKind::send, away, {});
  Options options;
  options.rendezvous = true;
  RankOfNpus rank({graph.build()}, options);
  rank.step();
  EXPECT_EQ(rank.npus->lookahead().sends.reaction, Time::zero());
}

// NPU 0 computes 5 ns before it sends, NPU 1 takes 3 ns. The rank's bound is the least one, and follows each of them.
TEST(Bounds, TheLeastNpuBoundsTheRank) {
  const auto then_send = [](std::int64_t compute) {
    GraphBuilder graph;
    graph.timed(NodeKind::compute, compute, {});
    graph.message(NodeKind::send, away, {0});
    return graph.build();
  };
  RankOfNpus rank({then_send(5), then_send(3)});
  rank.step();
  EXPECT_EQ(rank.npus->lookahead().sends.output, ns(3));
  rank.run_until(ns(3));
  EXPECT_EQ(rank.npus->lookahead().sends.output, ns(5));
}

}  // namespace
}  // namespace orrery::npu::test
