// The member side of the communicators of one rank. The test plays the NPUs that join, the host that is told, and the
// kernel.
#include "orrery/communicator/member_side.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "two_ranks.hpp"

namespace orrery::communicator::test {
namespace {

struct Announced {
  NpuId npu;
  NodeId node;
  Time time;
  Bytes sent;

  friend bool operator==(const Announced&, const Announced&) = default;
};

/// The member side of rank 0. Node n of NPU p has the trace's id 100 p + n.
class MemberSideTest : public ::testing::Test {
 protected:
  void make(Execution execution = Execution::at_host) {
    system.emplace(0, execution);
    side.emplace(system->setup, keep_in(reports), [this](const Completion& completion) {
      announced.push_back({completion.npu, completion.node, completion.time, completion.sent});
    });
  }
  void SetUp() override { make(); }

  std::uint32_t join(GroupId group, std::uint32_t npu, std::uint32_t node, Time now, std::uint64_t size = 1024,
                     bool is_recorded = true) {
    return side->join(side->membership(group, NpuId(npu)), {.npu = NpuId(npu),
                                                            .node = NodeId(node),
                                                            .node_id = 100 * npu + node,
                                                            .kind = collective::Kind::all_reduce,
                                                            .size = Bytes(size),
                                                            .now = now,
                                                            .is_recorded = is_recorded});
  }
  std::string error_of(auto&& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::optional<System> system;
  std::optional<MemberSide> side;
  std::vector<SentReport> reports;
  std::vector<Announced> announced;
};

// NPU 1 joins at 30 ns and NPU 0 at 20 ns. The host is told once, with the times in the order of the members.
TEST_F(MemberSideTest, TheLastToJoinSendsOneReportOfAllArrivals) {
  join(pair, 1, 7, ns(30));
  side->settle();
  EXPECT_TRUE(reports.empty()) << "nobody on another rank rests on the first arrival";
  join(pair, 0, 5, ns(20));
  side->settle();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].to, Rank(0));
  EXPECT_EQ(reports[0].report.kind, ReportKind::arrivals);
  EXPECT_EQ(reports[0].report.group, pair.value());
  EXPECT_EQ(reports[0].report.npu, 1U);
  EXPECT_EQ(reports[0].report.node_id, 107U);
  EXPECT_EQ(reports[0].report.size, Bytes(1024));
  EXPECT_EQ(reports[0].times, (std::vector{ns(20), ns(30)}));
}

// NPU 0 joins its first and its second collective before NPU 1 joins any.
TEST_F(MemberSideTest, CollectivesAreNumberedByEachMember) {
  EXPECT_EQ(join(pair, 0, 1, ns(10)), 0U);
  EXPECT_EQ(join(pair, 0, 2, ns(20)), 1U);
  EXPECT_EQ(join(pair, 1, 1, ns(30)), 0U);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].report.ordinal, 0U);
  EXPECT_EQ(reports[0].times, (std::vector{ns(10), ns(30)}));
  join(pair, 1, 2, ns(40));
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[1].report.ordinal, 1U);
  EXPECT_EQ(reports[1].times, (std::vector{ns(20), ns(40)}));
}

// The world is spread over ranks, so its host promises completions by the first arrival. NPUs of one rank may be ahead
// of each other: NPU 1 joins after NPU 0 did, but at an earlier time.
TEST_F(MemberSideTest, TheHostLearnsTheFirstArrivalAndEachEarlierOne) {
  join(world, 0, 1, ns(20));
  side->settle();
  join(world, 1, 1, ns(15));
  side->settle();
  side->settle();
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].report.kind, ReportKind::begun);
  EXPECT_EQ(reports[0].times, std::vector{ns(20)});
  EXPECT_EQ(reports[1].report.kind, ReportKind::begun);
  EXPECT_EQ(reports[1].times, std::vector{ns(15)});
  join(world, 2, 1, ns(40));
  side->settle();
  ASSERT_EQ(reports.size(), 3U);
  EXPECT_EQ(reports[2].report.kind, ReportKind::arrivals);
  EXPECT_EQ(reports[2].times, (std::vector{ns(20), ns(15), ns(40)}));
}

// All NPUs of the rank join before the time ends: the arrivals say all, a note of the first one is not needed.
TEST_F(MemberSideTest, NoFirstArrivalIsToldWhereAllJoinAtOnce) {
  for (std::uint32_t npu = 0; npu < 3; ++npu) join(world, npu, 1, ns(20));
  side->settle();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].report.kind, ReportKind::arrivals);
}

// Two NPUs of different depths join, and one of them wants no record. The report has the larger depth and wants no
// record.
TEST_F(MemberSideTest, AReportCarriesTheLongestChainOfCausesAndWhetherAllWantARecord) {
  system->kernel.depths = {{LpId(0), 3}, {LpId(1), 8}};
  join(pair, 0, 1, ns(10));
  join(pair, 1, 1, ns(10), 1024, false);
  EXPECT_EQ(reports.at(0).report.depth, 8U);
  EXPECT_FALSE(reports.at(0).report.is_recorded);
}

// NPU 0 joins with 1024 bytes and NPU 1 with 2048. The error names both nodes and both sizes.
TEST_F(MemberSideTest, MembersThatDisagreeAreRefused) {
  join(pair, 0, 5, ns(10), 1024);
  const std::string message = error_of([&] { join(pair, 1, 6, ns(10), 2048); });
  for (const char* part : {"trace.0", "disagree on their collective number 1", "1024 bytes", "2048 bytes", "NPU 1",
                           "'node 106' of trace.1"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

// The host says when each member completes. Each gets one event from the communicator's LP, and is told beforehand.
TEST_F(MemberSideTest, CompletionsBecomeOneEventForEachParticipant) {
  join(pair, 0, 5, ns(10));
  join(pair, 1, 6, ns(20));
  Report report = reports.at(0).report;
  report.kind = ReportKind::completions;
  report.size = Bytes(768);  // sent by each
  report.depth = 9;
  side->complete(report, std::vector{ns(100), ns(110)});
  const auto& events = system->kernel.scheduled;
  ASSERT_EQ(events.size(), 2U);
  const LpId communicator(4 + pair.value());
  for (std::uint32_t npu = 0; npu < 2; ++npu) {
    EXPECT_EQ(events[npu].time, npu == 0 ? ns(100) : ns(110));
    EXPECT_EQ(events[npu].target, LpId(npu));
    EXPECT_EQ(events[npu].source(), communicator);
    EXPECT_EQ(events[npu].node, 5 + npu);
    EXPECT_EQ(events[npu].kind, pdes::completion);
  }
  EXPECT_EQ(announced, (std::vector<Announced>{{NpuId(0), NodeId(5), ns(100), Bytes(768)},
                                               {NpuId(1), NodeId(6), ns(110), Bytes(768)}}));
  EXPECT_EQ(system->kernel.depth(communicator), 9U);
}

// One time stands for all. A completion beyond the range of times gets no event, but is announced.
TEST_F(MemberSideTest, OneTimeStandsForAllAndTheLastTimeForNone) {
  for (const Time time : {ns(90), Time::max()}) {
    join(pair, 0, 5, ns(10));
    join(pair, 1, 6, ns(20));
    Report report = reports.back().report;
    report.kind = ReportKind::completions;
    side->complete(report, std::vector{time});
  }
  ASSERT_EQ(system->kernel.scheduled.size(), 2U);
  EXPECT_EQ(system->kernel.scheduled[1].time, ns(90));
  ASSERT_EQ(announced.size(), 4U);
  EXPECT_EQ(announced[3].time, Time::max());
}

// An NPU asks for its membership in a group. It says how many members there are, how many are on this rank, and whether
// others are elsewhere; NPUs that are no members are refused.
TEST_F(MemberSideTest, AMembershipSaysWhoTheOthersAre) {
  const Membership in_world = side->membership(world, NpuId(2));
  EXPECT_EQ(in_world.members, 4U);
  EXPECT_EQ(in_world.local_participants, 3U);
  EXPECT_TRUE(in_world.is_remote);
  const Membership in_pair = side->membership(pair, NpuId(1));
  EXPECT_EQ(in_pair.members, 2U);
  EXPECT_EQ(in_pair.local_participants, 2U);
  EXPECT_FALSE(in_pair.is_remote);
  EXPECT_NE(error_of([&] { side->membership(pair, NpuId(2)); }).find("no member"), std::string::npos);
  EXPECT_NE(error_of([&] { side->membership(alone, NpuId(0)); }).find("no participant on this rank"),
            std::string::npos);
}

// A stuck run reports who has not joined what. Accesses to memory are counted apart from collectives.
TEST_F(MemberSideTest, ItKnowsWhoHasNotJoined) {
  join(world, 1, 5, ns(10));
  EXPECT_EQ(side->not_joined(world, 0, false), (std::vector{NpuId(0), NpuId(2)}));
  EXPECT_EQ(side->not_joined(world, 0, true), (std::vector{NpuId(0), NpuId(1), NpuId(2)}));
  EXPECT_EQ(side->not_joined(alone, 0, false), std::vector<NpuId>{});
  const Membership membership = side->membership(world, NpuId(1));
  EXPECT_EQ(side->join_access(membership), 0U);
  EXPECT_EQ(side->join_access(membership), 1U);
  EXPECT_EQ(side->joined(membership, false).ordinal, 0U);
  EXPECT_EQ(side->joined(membership, true).ordinal, 1U);
  EXPECT_EQ(side->joined(membership, true).group, world);
}

// Where members carry collectives out themselves, the host learns when the last one of the rank is through.
TEST_F(MemberSideTest, TheLastToLeaveTellsTheHost) {
  make(Execution::by_members);
  join(pair, 0, 5, ns(10));
  join(pair, 1, 6, ns(20));
  side->leave(side->membership(pair, NpuId(1)), 0, ns(50));
  EXPECT_EQ(reports.size(), 1U);
  side->leave(side->membership(pair, NpuId(0)), 0, ns(60));
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[1].report.kind, ReportKind::left);
  EXPECT_EQ(reports[1].times, std::vector{ns(60)});
  EXPECT_EQ(side->membership(world, NpuId(2)).position, 2U);
  EXPECT_EQ(side->member(side->membership(world, NpuId(2)), 3), NpuId(3));
}

// In a folded run NPUs 0 and 1 represent the members {0, 2} and {1, 3} of the world.
TEST_F(MemberSideTest, RepresentativesJoinForTheMembersThatTheyRepresent) {
  const Representatives representatives{{NpuId(0), NpuId(1)}, {0, 1, 0, 1}, 2};
  system->specs[0].representatives = &representatives;
  side.emplace(system->setup, keep_in(reports), [](const Completion&) {});
  const Membership membership = side->membership(world, std::uint32_t{1});
  EXPECT_EQ(membership.members, 4U);
  EXPECT_EQ(membership.local_participants, 2U);
  EXPECT_FALSE(membership.is_remote);
  side->join(membership, {.npu = NpuId(1), .node = NodeId(5), .size = Bytes(64), .now = ns(10)});
  EXPECT_EQ(side->not_joined(world, 0, false), (std::vector{NpuId(0), NpuId(2)}));
  side->join(side->membership(world, std::uint32_t{0}),
             {.npu = NpuId(0), .node = NodeId(5), .size = Bytes(64), .now = ns(30)});
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].times, (std::vector{ns(30), ns(10)}));
}

}  // namespace
}  // namespace orrery::communicator::test
