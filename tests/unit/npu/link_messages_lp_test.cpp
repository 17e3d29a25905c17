// Sends and receives of NPU 0 over simulated links. FakeLinks stands in for the links: it keeps what NPU 0 sends. The
// test plays NPU 3 of the other rank and says when messages arrive.
#include <gtest/gtest.h>

#include <algorithm>

#include "fake_links.hpp"
#include "orrery/collective/message_program.hpp"
#include "rank_of_npus.hpp"

namespace orrery::npu::test {
namespace {

using network::Message;
using test_support::GraphBuilder;
using trace::NodeKind;

/// Compute node 0 takes `compute` ns. Send 1, or receive 1, exchanges 1024 bytes with NPU 3 with tag 7 after it.
std::shared_ptr<const trace::Graph> message_after(NodeKind kind, std::int64_t compute) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, compute, {});
  graph.message(kind, away, {0});
  graph.node(1).detail = 7;
  return graph.build();
}

/// Returns a message of NPU 3 to NPU 0.
Message from_away(Message::Kind kind, std::uint32_t tag, std::uint64_t size = 1024) {
  return {.source = NpuId(away), .destination = NpuId(0), .tag = tag, .size = Bytes(size), .kind = kind};
}

class LinkMessages : public testing::Test {
 protected:
  RankOfNpus& rank_of(const std::shared_ptr<const trace::Graph>& graph, bool rendezvous = false) {
    Options options;
    options.rendezvous = rendezvous;
    return rank_.emplace(Graphs{graph}, options, memory::RemoteMemoryOptions{}, LinkedSystem{.links = &links_});
  }
  /// Delivers data of NPU 3 to NPU 0.
  void deliver(std::uint32_t tag, Time time, std::uint64_t size = 1024) {
    rank_->deliver(links_.arrival(from_away(Message::Kind::data, tag, size), time));
  }
  /// Delivers a clear to send of NPU 3 to NPU 0.
  void clear(std::uint32_t tag, Time time) {
    rank_->deliver(
        links_.arrival(from_away(Message::Kind::clear_to_send, tag, collective::clear_to_send_size().count()), time));
  }

  FakeLinks links_;
  std::optional<RankOfNpus> rank_;
};

// Without rendezvous a send gives its data to the links when it begins. The message names both NPUs, the node, the tag
// and the size, and counts as sent bytes and as traffic.
TEST_F(LinkMessages, ASendGivesItsDataToTheLinksAtOnce) {
  RankOfNpus& rank = rank_of(message_after(NodeKind::send, 10));
  rank.run();
  ASSERT_EQ(links_.sent.size(), 1U);
  const auto& [message, call, destinations] = links_.sent[0];
  EXPECT_EQ(message.source, NpuId(0));
  EXPECT_EQ(message.destination, NpuId(away));
  EXPECT_EQ(message.node, NodeId(1));
  EXPECT_EQ(message.tag, 7U);
  EXPECT_EQ(message.size, Bytes(1024));
  EXPECT_EQ(message.kind, Message::Kind::data);
  EXPECT_EQ(call.time, ns(10));
  EXPECT_EQ(call.stage(), pdes::Stage::server);
  EXPECT_EQ(call.source(), LpId(0));
  EXPECT_EQ(rank.npus->records()[0].bytes_sent, Bytes(1024));
  EXPECT_EQ(rank.traffic(), Bytes(1024));
  EXPECT_TRUE(rank.kernel.sent.empty()) << "no event goes past the links";
}

// A message to NPU 1 of the same rank says whether it stays on the rank, and in the cell, as the network tells.
TEST_F(LinkMessages, AMessageSaysHowFarItReaches) {
  GraphBuilder graph;
  graph.message(NodeKind::send, 1, {});
  const Graphs both{graph.build(), message_after(NodeKind::receive, 1)};
  const auto scope = [&](const std::vector<NpuId>& kept, const std::vector<std::uint32_t>& cell_of) {
    FakeLinks links;
    FakeNetwork network;
    network.kept = kept;
    RankOfNpus rank(both, {}, {}, LinkedSystem{.links = &links, .network = &network, .cell_of = cell_of});
    rank.run();
    EXPECT_EQ(links.sent.size(), 1U);
    return links.sent.at(0).message.scope;
  };
  const std::vector<NpuId> both_here{NpuId(0), NpuId(1)};
  EXPECT_EQ(scope({}, {}), pdes::Scope::anywhere);
  EXPECT_EQ(scope({}, {1, 1, 0, 0}), pdes::Scope::anywhere) << "a link of their way may be of another NPU";
  EXPECT_EQ(scope(both_here, {}), pdes::Scope::rank);
  EXPECT_EQ(scope(both_here, {0, 1, 0, 0}), pdes::Scope::rank);
  EXPECT_EQ(scope(both_here, {1, 1, 0, 0}), pdes::Scope::cell);
}

// The sender is free when the links say that all data are at the receiver, and not before.
TEST_F(LinkMessages, ASendEndsWithItsReceipt) {
  RankOfNpus& rank = rank_of(message_after(NodeKind::send, 10));
  rank.run();
  ASSERT_EQ(links_.sent.size(), 1U);
  EXPECT_FALSE(rank.spans().contains(1));
  rank.deliver(links_.receipt(links_.sent[0].message, ns(700)));
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(700)}));
  EXPECT_EQ(rank.npus->num_done(), 1U);
}

// The receive is posted at 10 ns and its message arrives at 600 ns. The receive ends when the message arrives.
TEST_F(LinkMessages, AReceiveThatIsPostedFirstEndsWhenItsMessageArrives) {
  RankOfNpus& rank = rank_of(message_after(NodeKind::receive, 10));
  rank.run();
  EXPECT_FALSE(rank.spans().contains(1));
  deliver(7, ns(600));
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(600)}));
  EXPECT_TRUE(links_.sent.empty()) << "without rendezvous a receive sends nothing";
}

// The message arrives at 600 ns and the receive is posted at 2000 ns. The receive takes no time.
TEST_F(LinkMessages, AReceiveWhoseMessageHasArrivedEndsAtOnce) {
  RankOfNpus& rank = rank_of(message_after(NodeKind::receive, 2000));
  deliver(7, ns(600));
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(2000), ns(2000)}));
}

/// Receives 1 and 2 follow compute node 0, which takes 50 ns. Their tags, peers and sizes are the test's.
struct TwoReceives {
  std::uint32_t tags[2], peers[2];
  std::uint64_t sizes[2];

  std::shared_ptr<const trace::Graph> graph() const {
    GraphBuilder graph;
    graph.timed(NodeKind::compute, 50, {});
    for (std::uint32_t i = 0; i < 2; ++i) {
      graph.message(NodeKind::receive, peers[i], {0});
      graph.node(1 + i).detail = tags[i];
      graph.node(1 + i).size = sizes[i];
    }
    return graph.build();
  }
};

// Receive 1 has tag 7 and receive 2 has tag 8. The message with tag 8 arrives first, and only receive 2 takes it.
TEST_F(LinkMessages, TagsTellMessagesApart) {
  RankOfNpus& rank = rank_of(TwoReceives{{7, 8}, {away, away}, {1024, 1024}}.graph());
  rank.run();
  deliver(8, ns(100));
  deliver(7, ns(200));
  rank.run();
  EXPECT_EQ(rank.spans().at(1).finish, ns(200));
  EXPECT_EQ(rank.spans().at(2).finish, ns(100));
}

// Receive 1 waits for NPU 2 and receive 2 for NPU 3. The message of NPU 3 arrives first, and only receive 2 takes it.
TEST_F(LinkMessages, SendersTellMessagesApart) {
  RankOfNpus& rank = rank_of(TwoReceives{{7, 7}, {2, away}, {1024, 1024}}.graph());
  rank.run();
  deliver(7, ns(100));
  Message of_npu_2 = from_away(Message::Kind::data, 7);
  of_npu_2.source = NpuId(2);
  rank.deliver(links_.arrival(of_npu_2, ns(200)));
  rank.run();
  EXPECT_EQ(rank.spans().at(1).finish, ns(200));
  EXPECT_EQ(rank.spans().at(2).finish, ns(100));
}

// Two receives and two messages have one tag and one sender. The first receive takes the first message, whether the
// receives or the messages come first. The sizes differ, so that a wrong match is an error.
TEST_F(LinkMessages, MessagesOfOneTagAreMatchedInOrder) {
  for (const bool messages_come_first : {false, true}) {
    SCOPED_TRACE(messages_come_first);
    RankOfNpus& rank = rank_of(TwoReceives{{7, 7}, {away, away}, {100, 200}}.graph());
    if (!messages_come_first) rank.run();
    const Time first = messages_come_first ? ns(20) : ns(300);
    deliver(7, first, 100);
    deliver(7, first + ns(10), 200);
    rank.run();
    EXPECT_EQ(rank.spans().at(1).finish, messages_come_first ? ns(50) : ns(300));
    EXPECT_EQ(rank.spans().at(2).finish, messages_come_first ? ns(50) : ns(310));
  }
}

// The receive is of 1024 bytes and the message of 1000. The run ends with an error that names the trace and both sizes,
// whether the receive or the message comes first.
TEST_F(LinkMessages, AMessageOfAnotherSizeThanItsReceiveIsRefused) {
  for (const bool message_comes_first : {false, true}) {
    SCOPED_TRACE(message_comes_first);
    RankOfNpus& rank = rank_of(message_after(NodeKind::receive, 10));
    if (!message_comes_first) rank.run();
    try {
      deliver(7, message_comes_first ? ns(5) : ns(600), 1000);
      rank.run();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      EXPECT_NE(message.find("trace.0"), std::string::npos) << message;
      EXPECT_NE(message.find("the receive is of 1024 bytes, the message from NPU 3 with tag 7 is of 1000"),
                std::string::npos)
          << message;
    }
  }
}

// With rendezvous a receive sends a clear to send when it is posted. This message is no traffic and no sent bytes.
TEST_F(LinkMessages, WithRendezvousAReceiveSendsAClearToSend) {
  RankOfNpus& rank = rank_of(message_after(NodeKind::receive, 10), true);
  rank.run();
  ASSERT_EQ(links_.sent.size(), 1U);
  const auto& [message, call, destinations] = links_.sent[0];
  EXPECT_EQ(message.kind, Message::Kind::clear_to_send);
  EXPECT_EQ(message.destination, NpuId(away));
  EXPECT_EQ(message.tag, 7U);
  EXPECT_EQ(message.size, collective::clear_to_send_size());
  EXPECT_EQ(call.time, ns(10));
  EXPECT_EQ(rank.npus->records()[0].bytes_sent, Bytes(0));
  EXPECT_EQ(rank.traffic(), Bytes(0));
}

// The send begins at 10 ns and the clear to send arrives at 700 ns. The data leave with the clear to send.
TEST_F(LinkMessages, DataWaitForTheClearToSend) {
  RankOfNpus& rank = rank_of(message_after(NodeKind::send, 10), true);
  rank.run();
  EXPECT_TRUE(links_.sent.empty());
  clear(7, ns(700));
  rank.run();
  ASSERT_EQ(links_.sent.size(), 1U);
  EXPECT_EQ(links_.sent[0].message.kind, Message::Kind::data);
  EXPECT_EQ(links_.sent[0].message.size, Bytes(1024));
  EXPECT_EQ(links_.sent[0].call.time, ns(700));
  rank.deliver(links_.receipt(links_.sent[0].message, ns(900)));
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(900)}));
}

// The clear to send arrives at 700 ns and the send begins at 1000 ns. The data leave when the send begins.
TEST_F(LinkMessages, AClearToSendThatArrivesFirstIsKept) {
  RankOfNpus& rank = rank_of(message_after(NodeKind::send, 1000), true);
  clear(7, ns(700));
  rank.run();
  ASSERT_EQ(links_.sent.size(), 1U);
  EXPECT_EQ(links_.sent[0].call.time, ns(1000));
}

// The send waits for a clear to send with tag 7. One with tag 8 does not let its data leave.
TEST_F(LinkMessages, AClearToSendIsForItsTagOnly) {
  RankOfNpus& rank = rank_of(message_after(NodeKind::send, 10), true);
  rank.run();
  clear(8, ns(100));
  rank.run();
  EXPECT_TRUE(links_.sent.empty());
  clear(7, ns(200));
  rank.run();
  ASSERT_EQ(links_.sent.size(), 1U);
  EXPECT_EQ(links_.sent[0].call.time, ns(200));
}

// A clear to send lets one send go. The second send of the same tag waits for the second clear to send.
TEST_F(LinkMessages, AClearToSendServesOneSend) {
  GraphBuilder graph;
  graph.message(NodeKind::send, away, {});
  graph.message(NodeKind::send, away, {0});
  RankOfNpus& rank = rank_of(graph.build(), true);
  clear(0, ns(100));
  rank.run();
  ASSERT_EQ(links_.sent.size(), 1U);
  rank.deliver(links_.receipt(links_.sent[0].message, ns(300)));
  rank.run();
  EXPECT_EQ(links_.sent.size(), 1U);
  clear(0, ns(400));
  rank.run();
  ASSERT_EQ(links_.sent.size(), 2U);
  EXPECT_EQ(links_.sent[1].message.node, NodeId(1));
}

// A stuck run reports the receive that waits for its message, with peer, tag and size.
TEST_F(LinkMessages, APostedReceiveIsReportedAsWaiting) {
  RankOfNpus& rank = rank_of(message_after(NodeKind::receive, 10));
  rank.run();
  const auto waits = rank.npus->waits();
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].node, NodeId(1));
  EXPECT_EQ(waits[0].since, ns(10));
  EXPECT_EQ(waits[0].partner, NpuId(away));
  EXPECT_EQ(waits[0].tag, 7U);
  EXPECT_EQ(waits[0].size, Bytes(1024));
}

// A send follows 7 ns after a receive. While the receive waits, NPU 0 tells the kernel that it may send 7 ns after a
// message. When the message has arrived, what is left is the compute node that ends at 607 ns.
TEST_F(LinkMessages, APostedReceiveBoundsWhatFollowsIt) {
  GraphBuilder graph;
  graph.message(NodeKind::receive, away, {});
  graph.timed(NodeKind::compute, 7, {0});
  graph.message(NodeKind::send, away, {1});
  RankOfNpus& rank = rank_of(graph.build());
  rank.step();
  EXPECT_EQ(rank.npus->lookahead().relays.output, Time::max());
  EXPECT_EQ(rank.npus->lookahead().relays.reaction, ns(7));
  deliver(0, ns(600));
  rank.step();
  EXPECT_EQ(rank.npus->lookahead().relays.output, ns(607));
  EXPECT_EQ(rank.npus->lookahead().relays.reaction, Time::max());
}

}  // namespace
}  // namespace orrery::npu::test
