// GOAL schedules: what their operations become, and what is refused.
#include "fixture.hpp"

namespace orrery::trace {
namespace {

class Goal : public TraceTest {
 protected:
  NpuTrace read_rank(std::uint32_t rank, const std::string& text) {
    return store_.read(write(text, "t.goal"), NpuId(rank));
  }
  std::string refusal_of_rank(const std::string& operations) {
    return refusal_of([&] { read_rank(0, "num_ranks 1\nrank 0 {\n" + operations + "}\n"); });
  }
};

// Three operations of rank 1, which follow each other, and a message of rank 0. The file is read once for both ranks.
TEST_F(Goal, OperationsBecomeNodes) {
  const std::string text =
      "num_ranks 2  # two\n\nrank 0 {\nl1: send 10b to 1 tag 5 cpu 0 nic 0\n}\nrank 1{\r\n"
      "a: recv 10b from 0 tag 5\nb requires a // b is below\nb: calc 1500\nc: calc 20 cpu 3\nc requires b\n}\n";
  store_ = Store({.streams = Streams::by_name, .num_npus = 2}, {});
  const NpuTrace sender = read_rank(0, text), receiver = read_rank(1, text);
  ASSERT_EQ(sender.graph->num_nodes(), 1U);
  EXPECT_EQ(sender.graph->nodes[0].kind, NodeKind::send);
  EXPECT_EQ(sender.graph->nodes[0].size, 10U);
  EXPECT_EQ(sender.peers, npus({1}));
  EXPECT_EQ(sender.tags, std::vector<std::uint64_t>{5});
  ASSERT_EQ(receiver.graph->num_nodes(), 3U);
  EXPECT_EQ(receiver.graph->nodes[0].kind, NodeKind::receive);
  EXPECT_EQ(receiver.graph->nodes[1].kind, NodeKind::cpu);
  EXPECT_EQ(receiver.graph->nodes[2].kind, NodeKind::compute);
  EXPECT_EQ(receiver.graph->nodes[2].stream, 1U);
  EXPECT_EQ(receiver.graph->duration_of(NodeId(1)), Time::from_ns(1500));
  EXPECT_EQ(successors(receiver, 0), std::vector<std::uint32_t>{1});
  EXPECT_EQ(successors(receiver, 1), std::vector<std::uint32_t>{2});
  EXPECT_EQ(store_.format(sender), "goal");
  EXPECT_EQ(store_.name_of(receiver, NodeId(1)), "b");
}

// d waits for the start of c, which waits for the start of b and the end of x; b waits for the end of a. So d begins
// when a and x are over.
TEST_F(Goal, ADependencyOnAStartIsOnWhatThatWaitsFor) {
  const NpuTrace trace = read_rank(0,
                                   "num_ranks 1\nrank 0 {\na: calc 1\nx: calc 1\nb: calc 1\nc: calc 1\nd: calc 1\n"
                                   "b requires a\nc irequires b\nc requires x\nd irequires c\n}\n");
  EXPECT_EQ(successors(trace, 0), (std::vector<std::uint32_t>{2, 3, 4}));
  EXPECT_EQ(successors(trace, 1), (std::vector<std::uint32_t>{3, 4}));
  EXPECT_TRUE(successors(trace, 2).empty());
}

// Schedules of one or two ranks, each with one mistake: the message names it, and the first one its line.
TEST_F(Goal, WhatIsNoScheduleIsRefusedWithItsLine) {
  EXPECT_HAS(refusal_of_rank("a: dance 5\n"), "t.goal:3: NPU 0: found 'dance'");
  EXPECT_HAS(refusal_of_rank("a: send 5b to\n"), "found 'send'");
  EXPECT_HAS(refusal_of_rank("a: send fiveb to 0\n"), "the size is 'five'");
  EXPECT_HAS(refusal_of_rank("a: calc -5\n"), "the time of calc is '-5'");
  EXPECT_HAS(refusal_of_rank("a: calc 5 gpu 1\n"), "found 'gpu'");
  EXPECT_HAS(refusal_of_rank("a: calc 5 cpu\n"), "'cpu' has no number");
  EXPECT_HAS(refusal_of_rank("a: calc 5\na: calc 6\n"), "label 'a' stands twice");
  EXPECT_HAS(refusal_of_rank("a: calc 5\na requires b\n"), "no operation 'b'");
  EXPECT_HAS(refusal_of([&] { read_rank(0, "num_ranks 2\nrank 0 {\n}\n"); }), "rank 1 is missing");
  EXPECT_HAS(refusal_of([&] { read_rank(0, "num_ranks 1\nrank 0 {\na: calc 1\n"); }), "ends within rank 0");
  EXPECT_HAS(refusal_of([&] { read_rank(0, "num_ranks 1\nrank 3 {\n}\n"); }), "0 to 0");
  EXPECT_HAS(refusal_of_rank("a: calc 1\nb: calc 1\na requires b\nb requires a\n"), "cycle");
  EXPECT_HAS(refusal_of([&] { read_rank(0, "num_ranks 0\nrank 0 {\na: calc 1\n}\n"); }), "the schedule has no rank");
}

// A mistake in rank 1 is one of NPU 1, whichever NPU the file is read for. Outside the ranks no NPU is named.
TEST_F(Goal, AMessageNamesTheRankOfItsLine) {
  store_ = Store({.streams = Streams::by_name, .num_npus = 2}, {});
  EXPECT_HAS(refusal_of([&] { read_rank(0, "num_ranks 2\nrank 0 {\n}\nrank 1 {\na: dance 5\n}\n"); }),
             "t.goal:5: NPU 1: found 'dance'");
  EXPECT_HAS(refusal_of([&] { read_rank(1, "num_ranks 2\nrank 0 {\na: calc 5\na requires b\n}\nrank 1 {\n}\n"); }),
             "t.goal:4: NPU 0: there is no operation 'b'");
  EXPECT_HAS(refusal_of([&] { read_rank(1, "num_ranks 2\nrank 0 {\n}\nring 1 {\n}\n"); }), "t.goal:4: found 'ring'");
}

// Two ranks and a message of 0 bytes: it becomes a message of 1 byte, with a warning.
TEST_F(Goal, MessagesOfNoByteKeepTheirOrder) {
  const NpuTrace trace = read_rank(0, "num_ranks 2\nrank 0 {\nsend 0b to 1\n}\nrank 1 {\nrecv 0b from 0\n}\n");
  EXPECT_EQ(trace.graph->nodes[0].kind, NodeKind::send);
  EXPECT_EQ(trace.graph->nodes[0].size, 1U);
  EXPECT_EQ(store_.notices().entries().count("goal-empty-message"), 1U);
}

}  // namespace
}  // namespace orrery::trace
