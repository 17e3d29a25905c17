// Sends and receives of NPU 0 in the congestion-unaware network. The test plays NPU 3 of the other rank.
#include <gtest/gtest.h>

#include <functional>

#include "orrery/collective/message_program.hpp"
#include "rank_of_npus.hpp"

namespace orrery::npu::test {
namespace {

using test_support::GraphBuilder;
using trace::NodeKind;

/// Compute node 0 takes `compute` ns. Receive 1 follows.
std::shared_ptr<const trace::Graph> receive_after(std::int64_t compute) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, compute, {});
  graph.message(NodeKind::receive, away, {0});
  return graph.build();
}

/// Compute node 0 takes `compute` ns. Send 1 follows.
std::shared_ptr<const trace::Graph> send_after(std::int64_t compute) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, compute, {});
  graph.message(NodeKind::send, away, {0});
  return graph.build();
}

Options with_rendezvous() {
  Options options;
  options.rendezvous = true;
  return options;
}

// The message is an event of NPU 3 at the time when all data are there. The sender is free at that time too.
TEST(Messages, ASendIsOneEventForTheReceiver) {
  RankOfNpus rank({send_after(10)});
  rank.run();
  ASSERT_EQ(rank.kernel.sent.size(), 1U);
  const auto& [to, event, more] = rank.kernel.sent[0];
  EXPECT_EQ(to, Rank(1));
  EXPECT_EQ(event.target, LpId(away));
  EXPECT_EQ(event.source(), LpId(0));
  EXPECT_EQ(event.time, ns(10) + rank.delay(away));
  EXPECT_EQ(event.detail, 1024U);
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(10) + rank.delay(away)}));
  EXPECT_EQ(rank.npus->records()[0].bytes_sent, Bytes(1024));
}

// NPU 0 sends to NPU 1, which lives on the same rank.
TEST(Messages, NpusOfOneRankExchangeMessages) {
  GraphBuilder sender, receiver;
  sender.message(NodeKind::send, 1, {});
  receiver.message(NodeKind::receive, 0, {});
  RankOfNpus rank({sender.build(), receiver.build()});
  rank.run();
  EXPECT_EQ(rank.spans(1).at(0), (Span{ns(0), rank.delay(1)}));
}

// The receive is posted at 10 ns. The message, of which the NPU learns later, is there at 600 ns.
TEST(Messages, AReceiveThatWaitsEndsWithItsMessage) {
  RankOfNpus rank({receive_after(10)});
  rank.run();
  EXPECT_TRUE(rank.npus->awaits(NpuId(0)).sends);
  EXPECT_FALSE(rank.npus->awaits(NpuId(0)).here);
  rank.deliver_message(away, 0, ns(600));
  EXPECT_FALSE(rank.npus->awaits(NpuId(0)).anything()) << "it is known when the receive ends";
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(600)}));
}

// The message is there at 600 ns, the receive is posted at 2000 ns. It takes no time.
TEST(Messages, AReceiveWhoseMessageIsThereEndsAtOnce) {
  RankOfNpus rank({receive_after(2000)});
  rank.deliver_message(away, 0, ns(600));
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(2000), ns(2000)}));
}

// NPU 0 knows of the message before it posts the receive at 10 ns, but the data are there at 600 ns only.
TEST(Messages, AMessageThatIsKnownButNotThereIsWaitedFor) {
  RankOfNpus rank({receive_after(10)});
  rank.deliver_message(away, 0, ns(600));
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(600)}));
}

// Receive 0 has tag 7 and receive 1 tag 8. The message with tag 8 comes first.
TEST(Messages, TagsTellMessagesApart) {
  GraphBuilder graph;
  graph.message(NodeKind::receive, away, {});
  graph.message(NodeKind::receive, away, {});
  graph.node(0).detail = 7;
  graph.node(1).detail = 8;
  RankOfNpus rank({graph.build()});
  rank.step();
  rank.deliver_message(away, 8, ns(100));
  rank.deliver_message(away, 7, ns(200));
  rank.run();
  EXPECT_EQ(rank.spans().at(0), (Span{ns(0), ns(200)}));
  EXPECT_EQ(rank.spans().at(1), (Span{ns(0), ns(100)}));
}

// Receive 0 waits for NPU 2 and receive 1 for NPU 3.
TEST(Messages, SendersTellMessagesApart) {
  GraphBuilder graph;
  graph.message(NodeKind::receive, 2, {});
  graph.message(NodeKind::receive, 3, {});
  RankOfNpus rank({graph.build()});
  rank.step();
  rank.deliver_message(3, 0, ns(100));
  rank.deliver_message(2, 0, ns(200));
  rank.run();
  EXPECT_EQ(rank.spans().at(0).finish, ns(200));
  EXPECT_EQ(rank.spans().at(1).finish, ns(100));
}

// Two receives and two messages of one tag. The first receive takes the first message, whether the receives or the
// messages come first. Sizes differ, so that a wrong match is an error.
TEST(Messages, MessagesOfOneTagAreMatchedInOrder) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 50, {});
  graph.message(NodeKind::receive, away, {0});
  graph.message(NodeKind::receive, away, {0});
  graph.node(1).size = 100;
  graph.node(2).size = 200;
  for (const bool messages_come_first : {false, true}) {
    RankOfNpus rank({graph.build()});
    if (!messages_come_first) rank.run();
    rank.deliver_message(away, 0, ns(300), 100);
    rank.deliver_message(away, 0, ns(400), 200);
    rank.run();
    EXPECT_EQ(rank.spans().at(1).finish, ns(300));
    EXPECT_EQ(rank.spans().at(2).finish, ns(400));
  }
}

// The receive is of 1024 bytes and the message of 1000. The run ends with an error that names the trace and both sizes,
// whether the receive or the message comes first.
TEST(Messages, AMessageOfAnotherSizeThanItsReceiveIsRefused) {
  const auto error_of = [](const std::function<void()>& act) -> std::string {
    try {
      act();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return error.what();
    }
    return "no error";
  };
  for (const bool message_comes_first : {false, true}) {
    RankOfNpus rank({receive_after(10)});
    if (!message_comes_first) rank.run();
    const std::string message = error_of([&] {
      rank.deliver_message(away, 0, ns(600), 1000);
      rank.run();
    });
    EXPECT_NE(message.find("trace.0"), std::string::npos) << message;
    EXPECT_NE(message.find("the receive is of 1024 bytes, the message from NPU 3 with tag 0 is of 1000"),
              std::string::npos)
        << message;
  }
}

// An NPU that is ahead of other ranks posts a receive at 100 ns. A message of 60 ns may still be under way, so it
// cannot go on. It asks the kernel to come back.
TEST(Messages, AnNpuThatIsAheadBreaksOffAtAReceive) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 100, {});
  graph.message(NodeKind::receive, away, {0});
  graph.timed(NodeKind::compute, 10, {1});
  RankOfNpus rank({graph.build()});
  rank.kernel.certain = false;
  rank.run();
  ASSERT_EQ(rank.kernel.waiting, std::vector{LpId(0)});
  EXPECT_TRUE(rank.npus->awaits(NpuId(0)).sends);
  rank.deliver_message(away, 0, ns(60));
  EXPECT_FALSE(rank.npus->awaits(NpuId(0)).anything());
  rank.npus->proceed(NpuId(0));
  rank.npus->settle(ns(100));
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(100), ns(100)}));
  EXPECT_EQ(rank.spans().at(2), (Span{ns(100), ns(110)}));
}

// The same, but no message of 100 ns or before comes. The NPU waits for a later one.
TEST(Messages, AnNpuThatIsAheadGoesOnWhenNothingCanComeBefore) {
  RankOfNpus rank({receive_after(100)});
  rank.kernel.certain = false;
  rank.run();
  rank.npus->proceed(NpuId(0));
  rank.npus->settle(ns(100));
  EXPECT_EQ(rank.kernel.waiting.size(), 1U) << "it does not ask twice";
  rank.deliver_message(away, 0, ns(300));
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(100), ns(300)}));
}

// With rendezvous a receive tells the sender that it may send.
TEST(Rendezvous, AReceiveSendsAClearToSend) {
  RankOfNpus rank({receive_after(10)}, with_rendezvous());
  rank.run();
  ASSERT_EQ(rank.kernel.sent.size(), 1U);
  const auto& event = rank.kernel.sent[0].event;
  EXPECT_EQ(event.kind, static_cast<std::uint16_t>(EventKind::clear_to_send));
  EXPECT_EQ(event.target, LpId(away));
  EXPECT_EQ(event.time, ns(10) + rank.delay(away, collective::clear_to_send_size()));
}

// The send begins at 10 ns. The clear to send is there at 700 ns: only then the data leave.
TEST(Rendezvous, TheDataOfASendWaitForTheClearToSend) {
  RankOfNpus rank({send_after(10)}, with_rendezvous());
  rank.run();
  EXPECT_TRUE(rank.kernel.sent.empty());
  EXPECT_TRUE(rank.npus->awaits(NpuId(0)).sends);
  rank.deliver(EventKind::clear_to_send, away, 0, ns(700));
  rank.run();
  ASSERT_EQ(rank.kernel.sent.size(), 1U);
  EXPECT_EQ(rank.kernel.sent[0].event.time, ns(700) + rank.delay(away));
  EXPECT_EQ(rank.spans().at(1), (Span{ns(10), ns(700) + rank.delay(away)}));
}

// The clear to send is known before the send begins at 1000 ns. It is there at 700 ns, or at 1500 ns.
TEST(Rendezvous, AClearToSendThatComesFirstIsKept) {
  for (const auto& [clearance, leaves] : {std::pair(ns(700), ns(1000)), std::pair(ns(1500), ns(1500))}) {
    RankOfNpus rank({send_after(1000)}, with_rendezvous());
    rank.deliver(EventKind::clear_to_send, away, 0, clearance);
    rank.run();
    ASSERT_EQ(rank.kernel.sent.size(), 1U);
    EXPECT_EQ(rank.kernel.sent[0].event.time, leaves + rank.delay(away));
  }
}

// The send begins at 1000 ns while NPU 0 is ahead of NPU 3. The clear to send of 700 ns comes late: the data leave at
// 1000 ns.
TEST(Rendezvous, AClearToSendOfAnEarlierTimeLetsTheDataLeaveWhenTheSendBegan) {
  RankOfNpus rank({send_after(1000)}, with_rendezvous());
  rank.run();
  rank.deliver(EventKind::clear_to_send, away, 0, ns(700));
  rank.run();
  EXPECT_EQ(rank.spans().at(1), (Span{ns(1000), ns(1000) + rank.delay(away)}));
}

// A stuck run reports the receives and the sends that wait.
TEST(Messages, ItKnowsWhatItWaitsFor) {
  GraphBuilder graph;
  graph.message(NodeKind::send, away, {});
  graph.message(NodeKind::receive, 2, {});
  graph.node(1).detail = 7;
  RankOfNpus rank({graph.build()}, with_rendezvous());
  rank.run();
  auto waits = rank.npus->waits();
  ASSERT_EQ(waits.size(), 2U);
  std::ranges::sort(waits, {}, &Wait::node);
  EXPECT_EQ(waits[0].partner, NpuId(away));
  EXPECT_EQ(waits[0].tag, 0U);
  EXPECT_EQ(waits[1].partner, NpuId(2));
  EXPECT_EQ(waits[1].tag, 7U);
  EXPECT_EQ(waits[1].size, Bytes(1024));
}

}  // namespace
}  // namespace orrery::npu::test
