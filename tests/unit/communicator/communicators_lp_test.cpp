// Both sides of communicators on two ranks. The test carries posts from one to the other.
#include "orrery/communicator/communicators.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "two_ranks.hpp"
#include "wire_format.hpp"

namespace orrery::communicator::test {
namespace {

Report some_report() { return {.group = 1, .ordinal = 2, .npu = 3, .depth = 4, .node_id = 5, .size = Bytes(6)}; }

// A report and three times are packed into a message. Unpacking gives the same report and times.
TEST(WireFormat, WhatIsPackedIsUnpacked) {
  const std::vector<Time> sent{ns(1), ns(2), ns(3)};
  std::vector<std::byte> message;
  wire::pack(some_report(), sent, message);
  std::vector<Time> times{ns(77)};
  const Report report = wire::unpack(message, times);
  EXPECT_EQ(times, sent);
  EXPECT_EQ(std::tie(report.group, report.ordinal, report.npu, report.depth, report.node_id, report.size),
            std::make_tuple(1U, 2U, 3U, 4U, 5U, Bytes(6)));
}

// A report has 1000 equal times. The message has room for one, and unpacking gives one.
TEST(WireFormat, EqualTimesTravelAsOne) {
  std::vector<std::byte> message;
  wire::pack(some_report(), std::vector(1000, ns(5)), message);
  EXPECT_EQ(message.size(), sizeof(Report) + sizeof(Time));
  std::vector<Time> times;
  wire::unpack(message, times);
  EXPECT_EQ(times, std::vector{ns(5)});
}

// A message is a byte too short, or has no time. Unpacking throws an error.
TEST(WireFormat, AMessageOfWrongSizeIsRefused) {
  std::vector<std::byte> message;
  wire::pack(some_report(), std::vector{ns(5)}, message);
  std::vector<Time> times;
  EXPECT_THROW(wire::unpack(std::span(message).first(message.size() - 1), times), Error);
  EXPECT_THROW(wire::unpack(std::span(message).first(sizeof(Report)), times), Error);
}

/// A rank with its communicators.
struct OneRank {
  explicit OneRank(int here)
      : system(here), communicators(system.setup, [this](const Completion& completion) {
          announced.emplace_back(completion.npu, completion.time);
        }) {}

  void join(std::uint32_t npu, Time now) {
    MemberSide& members = communicators.members();
    members.join(
        members.membership(world, NpuId(npu)),
        {.npu = NpuId(npu), .node = NodeId(0), .kind = collective::Kind::all_reduce, .size = Bytes(1024), .now = now});
  }

  System system;
  std::vector<std::pair<NpuId, Time>> announced;
  Communicators communicators;
};

void carry_posts(OneRank& from, OneRank& to, int rank) {
  for (const auto& post : std::exchange(from.system.kernel.posted, {})) {
    EXPECT_EQ(post.to, Rank(1 - rank));
    to.communicators.receive(Rank(rank), post.message);
  }
}

// NPUs 0 to 2 of rank 0 and NPU 3 of rank 1 join an all-reduce of the world, which rank 0 hosts. All complete at the
// times that the engine computes, each on its own rank.
TEST(Communicators, ACollectiveOfTwoRanksCompletesOnBoth) {
  OneRank first(0), second(1);
  second.join(3, ns(10));
  second.communicators.settle();
  first.join(0, ns(20));
  first.communicators.settle();
  EXPECT_TRUE(first.system.kernel.posted.empty()) << "the host is on this rank";
  first.join(1, ns(30));
  first.join(2, ns(40));
  carry_posts(second, first, 1);
  carry_posts(first, second, 0);
  const auto expected = first.system.completions({ns(20), ns(30), ns(40), ns(10)});
  EXPECT_EQ(first.announced, (std::vector<std::pair<NpuId, Time>>{
                                 {NpuId(0), expected[0]}, {NpuId(1), expected[1]}, {NpuId(2), expected[2]}}));
  EXPECT_EQ(second.announced, (std::vector<std::pair<NpuId, Time>>{{NpuId(3), expected[3]}}));
  ASSERT_EQ(second.system.kernel.scheduled.size(), 1U);
  EXPECT_EQ(second.system.kernel.scheduled[0].time, expected[3]);
  EXPECT_EQ(first.communicators.records().size(), 1U);
  EXPECT_TRUE(second.communicators.records().empty());
}

}  // namespace
}  // namespace orrery::communicator::test
