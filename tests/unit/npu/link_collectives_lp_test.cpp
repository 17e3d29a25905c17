// Collectives of NPU 0 over simulated links, where members exchange the messages of each step themselves. FakeLinks
// stands in for the links: it keeps what NPU 0 sends. The test plays NPU 1 and says when messages arrive.
#include <gtest/gtest.h>

#include <algorithm>

#include "fake_links.hpp"
#include "orrery/collective/message_program.hpp"
#include "rank_of_npus.hpp"

namespace orrery::npu::test {
namespace {

using network::Message;
using test_support::GraphBuilder;
using trace::CollectiveKind;
using trace::NodeKind;

constexpr Time endpoint_delay = ns(10);               // a collective begins with it, and each step ends with it
constexpr Time first_step = ns(10) + endpoint_delay;  // of a collective that NPU 0 joins at 10 ns

/// Compute node 0 takes `compute` ns. Collective 1 of NPUs 0 and 1 follows it.
std::shared_ptr<const trace::Graph> collective_after(std::int64_t compute, CollectiveKind kind) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, compute, {});
  graph.collective(RankOfNpus::pair, trace::all_dimensions, {0});
  graph.node(1).collective = kind;
  return graph.build();
}

/// Returns the options of collectives that one algorithm carries out.
collective::Options all_by(std::string_view algorithm) {
  collective::Options options;
  options.all_reduce = options.all_gather = options.reduce_scatter = options.all_to_all = {{algorithm}};
  options.endpoint_delay = endpoint_delay;
  return options;
}

class LinkCollectives : public testing::Test {
 protected:
  RankOfNpus& rank_of(const Graphs& graphs, LinkedSystem system, bool rendezvous = false) {
    Options options;
    options.rendezvous = system.collectives.rendezvous = rendezvous;
    system.links = &links_;
    return rank_.emplace(graphs, options, memory::RemoteMemoryOptions{}, system);
  }
  /// NPU 0 takes part in a collective from 10 ns on, which a ring of NPUs 0 and 1 carries out.
  RankOfNpus& ring_of(CollectiveKind kind, bool rendezvous = false) {
    return rank_of({collective_after(10, kind)}, {.collectives = all_by("ring")}, rendezvous);
  }
  /// Delivers a message of NPU 1 for a step of NPU 0 in a collective of the pair.
  void deliver(std::uint32_t step, Time time, std::uint32_t ordinal = 0,
               Message::Kind kind = Message::Kind::step_data) {
    const Message message{.source = NpuId(1),
                          .destination = NpuId(0),
                          .size = Bytes(512),
                          .kind = kind,
                          .step = {.group = GroupId(1), .ordinal = ordinal, .member = 1, .id = {0, step}}};
    rank_->deliver(links_.arrival(message, time));
  }
  void clear(std::uint32_t step, Time time) { deliver(step, time, 0, Message::Kind::step_clear_to_send); }
  /// Returns how many messages of this kind have been sent.
  std::ptrdiff_t count(Message::Kind kind) const {
    return std::ranges::count(links_.sent, kind, [](const FakeLinks::Sent& sent) { return sent.message.kind; });
  }

  FakeLinks links_;
  std::optional<RankOfNpus> rank_;
};

// NPU 0 joins an all-reduce of 1024 bytes at 10 ns. After an endpoint delay it sends half of it to NPU 1. The message
// names the collective and the step, and counts as sent bytes and as traffic.
TEST_F(LinkCollectives, AMemberThatJoinsSendsItsFirstStep) {
  RankOfNpus& rank = ring_of(CollectiveKind::all_reduce);
  rank.run();
  ASSERT_EQ(links_.sent.size(), 1U);
  const auto& [message, call, destinations] = links_.sent[0];
  EXPECT_EQ(message.kind, Message::Kind::step_data);
  EXPECT_EQ(message.source, NpuId(0));
  EXPECT_EQ(message.destination, NpuId(1));
  EXPECT_EQ(message.node, NodeId(1));
  EXPECT_EQ(message.size, Bytes(512));
  EXPECT_EQ(message.step.group, GroupId(1));
  EXPECT_EQ(message.step.ordinal, 0U);
  EXPECT_EQ(message.step.member, 0U);
  EXPECT_EQ(message.step.id.step, 0U);
  EXPECT_FALSE(message.step.wants_receipt);
  EXPECT_EQ(call.time, first_step);
  EXPECT_EQ(call.stage(), pdes::Stage::server);
  EXPECT_EQ(rank.npus->records()[0].bytes_sent, Bytes(512));
  EXPECT_EQ(rank.traffic(), Bytes(512));
  EXPECT_TRUE(rank.kernel.sent.empty()) << "no event goes past the links";
}

// An all-reduce of two members has two steps. Each ends an endpoint delay after its message has arrived, and the NPU is
// woken then: after the first step it sends the second, after the second its node is complete.
TEST_F(LinkCollectives, AStepEndsWhenTheNpuIsWoken) {
  RankOfNpus& rank = ring_of(CollectiveKind::all_reduce);
  rank.run();
  deliver(0, ns(100));
  rank.run();
  ASSERT_EQ(links_.sent.size(), 2U);
  EXPECT_EQ(links_.sent[1].message.step.id.step, 1U);
  EXPECT_EQ(links_.sent[1].call.time, ns(100) + endpoint_delay);
  EXPECT_FALSE(rank.spans().contains(1));
  deliver(1, ns(200));
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(200) + endpoint_delay}));
  EXPECT_EQ(rank.npus->num_done(), 1U);
}

// The first message of NPU 1 arrives at 4 ns, before NPU 0 joins at 10 ns. NPU 0 keeps it and does not wait in its
// first step, which ends an endpoint delay after it began.
TEST_F(LinkCollectives, AMessageThatArrivesBeforeTheNpuJoinsIsKept) {
  RankOfNpus& rank = ring_of(CollectiveKind::all_reduce);
  deliver(0, ns(4));
  rank.run();
  ASSERT_EQ(links_.sent.size(), 2U);
  EXPECT_EQ(links_.sent[0].call.time, first_step);
  EXPECT_EQ(links_.sent[1].call.time, first_step + endpoint_delay);
}

// Two all-gathers follow each other from 10 ns on. The message of the second one arrives before NPU 0 joins the first
// one, or while it is in it. It does not complete the first one, and NPU 0 does not wait for it in the second one.
TEST_F(LinkCollectives, OrdinalsTellCollectivesOfAGroupApart) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 10, {});
  graph.collective(RankOfNpus::pair, trace::all_dimensions, {0});
  graph.collective(RankOfNpus::pair, trace::all_dimensions, {1});
  graph.node(1).collective = graph.node(2).collective = CollectiveKind::all_gather;
  for (const Time arrival : {ns(4), ns(50)}) {
    RankOfNpus& rank = rank_of({graph.build()}, {.collectives = all_by("ring")});
    deliver(0, arrival, 1);
    rank.run();
    EXPECT_FALSE(rank.spans().contains(1));
    deliver(0, ns(100), 0);
    rank.run();
    EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(100) + endpoint_delay}));
    EXPECT_EQ(rank.spans().at(2), (Span{ns(110), ns(110) + endpoint_delay * 2}));
  }
}

// With rendezvous NPU 0 asks NPU 1 for the data of the step, and keeps its own data until NPU 1 asks for them. A clear
// to send is neither traffic nor sent bytes.
TEST_F(LinkCollectives, WithRendezvousTheDataOfAStepWaitForTheClearToSend) {
  RankOfNpus& rank = ring_of(CollectiveKind::all_gather, true);
  rank.run();
  ASSERT_EQ(links_.sent.size(), 1U);
  EXPECT_EQ(links_.sent[0].message.kind, Message::Kind::step_clear_to_send);
  EXPECT_EQ(links_.sent[0].message.size, collective::clear_to_send_size());
  EXPECT_EQ(links_.sent[0].message.step.id.step, 0U);
  EXPECT_EQ(rank.traffic(), Bytes(0));
  EXPECT_EQ(rank.npus->records()[0].bytes_sent, Bytes(0));
  clear(0, ns(300));
  rank.run();
  ASSERT_EQ(links_.sent.size(), 2U);
  EXPECT_EQ(links_.sent[1].message.kind, Message::Kind::step_data);
  EXPECT_EQ(links_.sent[1].call.time, ns(300));
}

// The clear to send of NPU 1 arrives at 4 ns, before NPU 0 joins at 10 ns. The data of NPU 0 leave
// with its first step.
TEST_F(LinkCollectives, AClearToSendThatArrivesBeforeTheNpuJoinsIsKept) {
  RankOfNpus& rank = ring_of(CollectiveKind::all_gather, true);
  clear(0, ns(4));
  rank.run();
  EXPECT_EQ(count(Message::Kind::step_data), 1);
  EXPECT_EQ(links_.sent[0].message.kind, Message::Kind::step_data);
  EXPECT_EQ(links_.sent[0].call.time, first_step);
}

// NPU 0 is the root of a binomial tree and carries out an all-reduce: it receives in its first step and sends in its
// second one. That step lasts until the data have been delivered, so NPU 0 asks for a receipt, which ends the step.
TEST_F(LinkCollectives, AReceiptEndsAStepThatAwaitsDelivery) {
  collective::Options options = all_by("ring");
  options.all_reduce = {{"binomialTree"}};
  RankOfNpus& rank = rank_of({collective_after(10, CollectiveKind::all_reduce)}, {.collectives = options});
  rank.run();
  EXPECT_TRUE(links_.sent.empty());
  deliver(0, ns(100));
  rank.run();
  ASSERT_EQ(links_.sent.size(), 1U);
  EXPECT_TRUE(links_.sent[0].message.step.wants_receipt);
  EXPECT_EQ(links_.sent[0].message.step.receipt_step, 1U);
  EXPECT_FALSE(rank.spans().contains(1));
  rank.deliver(links_.receipt(links_.sent[0].message, ns(400)));
  rank.run();
  ASSERT_TRUE(rank.spans().contains(1));
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(400) + endpoint_delay}));
}

// A switch carries out the all-reduce of NPUs 0 and 1. Each of them sends its data to the switch once, as one multicast
// that names the other one as destination and both as receivers of the result.
TEST_F(LinkCollectives, AMemberSendsToTheSwitchThatCombines) {
  LinkedSystem system;
  system.dimension.shape = topology::Shape("Switch");
  system.dimension.in_switch_operations = 2;  // one for each pair of NPUs
  system.collectives = all_by("inSwitch");
  const auto graph = collective_after(10, CollectiveKind::all_reduce);
  RankOfNpus& rank = rank_of({graph, graph}, system);
  rank.run();
  ASSERT_EQ(links_.sent.size(), 2U);
  for (std::uint32_t npu = 0; npu < 2; ++npu) {
    const auto& [message, call, destinations] = links_.sent[npu];
    EXPECT_EQ(message.source, NpuId(npu));
    EXPECT_EQ(message.destination, NpuId(1 - npu));
    EXPECT_EQ(message.size, Bytes(1024));
    EXPECT_EQ(message.combining.parts, 2U);
    EXPECT_EQ(message.combining.result, Bytes(1024));
    EXPECT_EQ(destinations, (std::vector{NpuId(0), NpuId(1)}));
    EXPECT_EQ(rank.npus->records()[npu].bytes_sent, Bytes(1024));
  }
  EXPECT_EQ(rank.traffic(), Bytes(2048));
}

// When the last member of this rank leaves a collective, the host of the communicator gets a report with the time.
TEST_F(LinkCollectives, TheHostIsToldWhenTheLastMemberLeaves) {
  const auto graph = collective_after(10, CollectiveKind::all_gather);
  RankOfNpus& rank = rank_of({graph, graph}, {.collectives = all_by("ring")});
  rank.run();
  ASSERT_EQ(rank.reports.size(), 1U) << "both have joined";
  ASSERT_EQ(links_.sent.size(), 2U);
  rank.deliver(links_.arrival(links_.sent[1].message, ns(100)));
  rank.run();
  EXPECT_EQ(rank.npus->num_done(), 1U);
  EXPECT_EQ(rank.reports.size(), 1U) << "NPU 1 has not left";
  rank.deliver(links_.arrival(links_.sent[0].message, ns(200)));
  rank.run();
  EXPECT_EQ(rank.npus->num_done(), 2U);
  ASSERT_EQ(rank.reports.size(), 2U);
  EXPECT_EQ(rank.reports[1].report.kind, communicator::ReportKind::left);
  EXPECT_EQ(rank.reports[1].report.ordinal, 0U);
  EXPECT_EQ(rank.reports[1].times, std::vector{ns(200) + endpoint_delay});
}

// With rendezvous NPU 0 has all data of NPU 1 and is done at 110 ns, but NPU 1 has not asked for the data of NPU 0. NPU
// 0 still sends them when the clear to send arrives at 300 ns, and its node keeps its end.
TEST_F(LinkCollectives, AMemberThatHasLeftStillSendsDataThatOthersAskFor) {
  RankOfNpus& rank = ring_of(CollectiveKind::all_gather, true);
  rank.run();
  deliver(0, ns(100));
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(100) + endpoint_delay}));
  EXPECT_EQ(count(Message::Kind::step_data), 0);
  clear(0, ns(300));
  rank.run();
  EXPECT_EQ(count(Message::Kind::step_data), 1);
  EXPECT_EQ(links_.sent.back().call.time, ns(300));
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(100) + endpoint_delay}));
  EXPECT_EQ(std::ranges::count(rank.reports, communicator::ReportKind::left,
                               [](const RankOfNpus::SentReport& sent) { return sent.report.kind; }),
            1);
}

// While NPU 0 may be asked for data after it has left, the kernel may promise other ranks nothing. When it has sent
// them, nothing more can follow.
TEST_F(LinkCollectives, DataThatOthersAskForBoundTheLookahead) {
  RankOfNpus& rank = ring_of(CollectiveKind::all_gather, true);
  rank.run();
  EXPECT_EQ(rank.npus->lookahead().relays.reaction, Time::zero()) << "the collective is under way";
  deliver(0, ns(100));
  rank.run();
  EXPECT_EQ(rank.npus->lookahead().relays.reaction, Time::zero()) << "NPU 1 may ask for data";
  clear(0, ns(300));
  rank.run();
  EXPECT_EQ(rank.npus->lookahead().relays.reaction, Time::max());
}

// So do the messages of a collective of NPUs 0 and 1, which are both of this rank.
TEST_F(LinkCollectives, MessagesOfACollectiveSayHowFarTheyReach) {
  const auto graph = collective_after(10, CollectiveKind::all_gather);
  const auto expect_scope = [&](const std::vector<NpuId>& kept, pdes::Scope scope) {
    FakeNetwork network;
    network.kept = kept;
    links_.sent.clear();
    rank_of({graph, graph}, {.collectives = all_by("ring"), .network = &network}).run();
    ASSERT_FALSE(links_.sent.empty());
    for (const auto& sent : links_.sent) EXPECT_EQ(sent.message.scope, scope);
  };
  expect_scope({}, pdes::Scope::anywhere);
  expect_scope({NpuId(0), NpuId(1)}, pdes::Scope::rank);
}

}  // namespace
}  // namespace orrery::npu::test
