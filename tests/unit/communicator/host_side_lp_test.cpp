// The host side of communicators. The test plays the ranks whose members arrive, and the kernel.
#include "orrery/communicator/host_side.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "two_ranks.hpp"

namespace orrery::communicator::test {
namespace {

/// The host side of rank 0, which hosts the world: NPUs 0 to 2 on rank 0 and NPU 3 on rank 1.
class HostSideTest : public ::testing::Test {
 protected:
  void make(Execution execution = Execution::at_host) {
    system.emplace(0, execution);
    side.emplace(system->setup, keep_in(reports));
  }
  void SetUp() override { make(); }

  static Report report(ReportKind kind, std::uint32_t ordinal = 0, std::uint32_t npu = 0) {
    return {.group = world.value(),
            .ordinal = ordinal,
            .npu = npu,
            .node_id = 100 * npu,
            .size = Bytes(1024),
            .collective = static_cast<std::uint8_t>(collective::Kind::all_reduce),
            .kind = kind};
  }
  void arrive(int rank, const std::vector<Time>& times, std::uint32_t ordinal = 0) {
    side->receive(Rank(rank), report(ReportKind::arrivals, ordinal, rank == 0 ? 0 : 3), times);
  }
  Time least_duration() {
    return system->engine.least_duration(*system->engine.layout({}, trace::all_dimensions),
                                         collective::Kind::all_reduce, Bytes(1024));
  }

  std::optional<System> system;
  std::optional<HostSide> side;
  std::vector<SentReport> reports;
};

// What is drawn for a collective lengthens its time from the last arrival on, for all members alike; the next
// collective has a factor of its own.
TEST_F(HostSideTest, AFactorLengthensTheTimeFromTheLastArrivalOn) {
  Variations variations;
  variations.add({DrawnPer::collective, 8, {.kind = DistributionKind::uniform, .least = 1, .most = 3}});
  system->setup.variations = &variations;
  side.emplace(system->setup, keep_in(reports));
  const auto exact = system->completions({ns(10), ns(20), ns(30), ns(900)});
  std::vector<double> factors;
  for (std::uint32_t ordinal = 0; ordinal < 2; ++ordinal) {
    reports.clear();
    arrive(0, {ns(10), ns(20), ns(30)}, ordinal);
    arrive(1, {ns(900)}, ordinal);
    ASSERT_EQ(reports.size(), 2U);
    factors.push_back((reports[1].times[0] - ns(900)).seconds() / (exact[3] - ns(900)).seconds());
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR((reports[0].times[i] - ns(900)).seconds(), (exact[i] - ns(900)).seconds() * factors.back(), 2e-12);
  }
  EXPECT_GT(factors[0], 1);
  EXPECT_LT(factors[0], 3);
  EXPECT_NE(factors[0], factors[1]);
}

// Both ranks report arrivals, in either order. Each is told the completions of its own members, as the engine computes
// them.
TEST_F(HostSideTest, EachRankIsToldTheCompletionsOfItsMembers) {
  for (const int first : {0, 1}) {
    make();
    reports.clear();
    const std::vector<Time> arrivals{ns(10), ns(20), ns(30), ns(900)};
    const auto expected = system->completions(arrivals);
    const auto arrive_from = [&](int rank) {
      arrive(rank, rank == 0 ? std::vector{ns(10), ns(20), ns(30)} : std::vector{ns(900)});
    };
    arrive_from(first);
    EXPECT_TRUE(reports.empty());
    arrive_from(1 - first);
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_EQ(reports[0].to, Rank(0));
    EXPECT_EQ(reports[0].report.kind, ReportKind::completions);
    EXPECT_EQ(reports[0].times, std::vector(expected.begin(), expected.begin() + 3));
    EXPECT_EQ(reports[1].to, Rank(1));
    EXPECT_EQ(reports[1].times, std::vector{expected[3]});
    // Each member of a ring of four sends 2 * 3 / 4 of the bytes.
    EXPECT_EQ(reports[1].report.size, Bytes(1536));
    EXPECT_EQ(system->network.bytes()[0], Bytes(4 * 1536));
  }
}

// Rank 0 reports the arrivals of two collectives in a row before rank 1 reports any.
TEST_F(HostSideTest, SeveralCollectivesOfACommunicatorMayBeUnderWay) {
  arrive(0, {ns(10)}, 0);
  arrive(0, {ns(500)}, 1);
  arrive(1, {ns(20)}, 0);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].report.ordinal, 0U);
  arrive(1, {ns(600)}, 1);
  ASSERT_EQ(reports.size(), 4U);
  EXPECT_EQ(reports[2].report.ordinal, 1U);
  EXPECT_EQ(reports[2].times[0], system->completions({ns(500), ns(500), ns(500), ns(600)})[0]);
}

// Members recorded 700 ns and 300 ns: all complete 300 ns after the last arrival. Without a record of one of them the
// engine decides.
TEST_F(HostSideTest, TheShortestRecordDecidesIfAllMembersHaveOne) {
  const auto finish = [&](Time here, Time there, std::uint32_t ordinal) {
    for (const auto& [rank, recorded] : {std::pair(0, here), std::pair(1, there)}) {
      Report arrivals = report(ReportKind::arrivals, ordinal, rank == 0 ? 0 : 3);
      arrivals.recorded = recorded;
      side->receive(Rank(rank), arrivals, std::vector{ns(rank == 0 ? 10 : 90)});
    }
    return reports.back().times.front();
  };
  EXPECT_EQ(finish(ns(700), ns(300), 0), ns(390));
  EXPECT_EQ(finish(ns(300), ns(700), 1), ns(390));
  EXPECT_EQ(finish(ns(300), Time::zero(), 2), system->completions({ns(10), ns(10), ns(10), ns(90)})[3]);
}

// What the rank may promise about completions rests on the first arrival: it becomes earlier with earlier arrivals, and
// there is nothing to promise when the collective is over.
TEST_F(HostSideTest, APendingReplyIsTheFirstArrivalPlusTheLeastDuration) {
  EXPECT_EQ(side->pending_reply(Rank(1)), Time::max());
  side->receive(Rank(0), report(ReportKind::begun), std::vector{ns(50)});
  EXPECT_EQ(side->pending_reply(Rank(1)), ns(50) + least_duration());
  side->receive(Rank(0), report(ReportKind::begun), std::vector{ns(40)});
  EXPECT_EQ(side->pending_reply(Rank(1)), ns(40) + least_duration());
  arrive(1, {ns(45)});
  EXPECT_EQ(side->pending_reply(Rank(0)), ns(40) + least_duration());
  arrive(0, {ns(50), ns(40), ns(60)});
  EXPECT_EQ(side->pending_reply(Rank(0)), Time::max());
  EXPECT_EQ(side->pending_reply(Rank(1)), Time::max());
}

// The pair lives on rank 0 alone, so rank 1 awaits no reply of it.
TEST_F(HostSideTest, ARankWithoutMembersAwaitsNoReply) {
  side->receive(Rank(0), report(ReportKind::begun), std::vector{ns(50)});
  Report of_pair = report(ReportKind::begun);
  of_pair.group = pair.value();
  side->receive(Rank(0), of_pair, std::vector{ns(1)});
  EXPECT_EQ(side->pending_reply(Rank(1)), ns(50) + least_duration());
}

// Two collectives, of which the members want a record of the first only. Sums count both.
TEST_F(HostSideTest, RecordsAreKeptOfThoseThatAllMembersWantRecorded) {
  arrive(0, {ns(10), ns(20), ns(30)}, 0);
  arrive(1, {ns(5)}, 0);
  Report unrecorded = report(ReportKind::arrivals, 1, 3);
  unrecorded.is_recorded = false;
  arrive(0, {ns(500)}, 1);
  side->receive(Rank(1), unrecorded, std::vector{ns(600)});
  ASSERT_EQ(side->records().size(), 1U);
  const CollectiveRecord& record = side->records()[0];
  const auto completions = system->completions({ns(10), ns(20), ns(30), ns(5)});
  EXPECT_EQ(record.group, world);
  EXPECT_EQ(record.ordinal, 0U);
  EXPECT_EQ(record.members, 4U);
  EXPECT_EQ(record.first_arrival, ns(5));
  EXPECT_EQ(record.last_arrival, ns(30));
  EXPECT_EQ(record.finish, *std::ranges::max_element(completions));
  const auto sums = side->sums();
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].count, 2U);
  EXPECT_EQ(sums[0].bytes, 2048U);
}

// Each event of the reply is one longer on the chain of causes than the longest report.
TEST_F(HostSideTest, TheReplyFollowsFromTheLongestChainOfCauses) {
  Report deep = report(ReportKind::arrivals);
  deep.depth = 17;
  side->receive(Rank(0), deep, std::vector{ns(10)});
  arrive(1, {ns(20)});
  EXPECT_EQ(system->kernel.depth(LpId(4)), 18U);
  EXPECT_EQ(reports.at(0).report.depth, 18U);
}

// One rank reports an all-reduce and the other one an all-gather of the same group. The error names both.
TEST_F(HostSideTest, RanksThatDisagreeAreRefused) {
  arrive(0, {ns(10)});
  Report other = report(ReportKind::arrivals, 0, 3);
  other.collective = static_cast<std::uint8_t>(collective::Kind::all_gather);
  try {
    side->receive(Rank(1), other, std::vector{ns(20)});
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_NE(message.find("here it is all-reduce of 1024 bytes, but all-gather of 1024 bytes at NPU 3"),
              std::string::npos)
        << message;
  }
}

// Where members carry collectives out themselves, the host answers nothing. The record is there when the last rank is
// through.
TEST_F(HostSideTest, MembersThatCarryCollectivesOutSayWhenTheyAreThrough) {
  make(Execution::by_members);
  arrive(0, {ns(10), ns(20), ns(30)});
  arrive(1, {ns(40)});
  EXPECT_TRUE(reports.empty());
  EXPECT_EQ(side->pending_reply(Rank(1)), Time::max());
  side->receive(Rank(1), report(ReportKind::left, 0, 3), std::vector{ns(300)});
  EXPECT_TRUE(side->records().empty());
  side->receive(Rank(0), report(ReportKind::left), std::vector{ns(250)});
  ASSERT_EQ(side->records().size(), 1U);
  EXPECT_EQ(side->records()[0].finish, ns(300));
  EXPECT_EQ(side->records()[0].first_arrival, ns(10));
}

// In a folded run NPUs 0 and 1 represent the members {0, 2} and {1, 3}, and the communicator stands for three.
TEST_F(HostSideTest, ARepresentativeCompletesWhenTheMembersDoThatItRepresents) {
  const Representatives representatives{{NpuId(0), NpuId(1)}, {0, 1, 0, 1}, 3};
  system->specs[0].representatives = &representatives;
  side.emplace(system->setup, keep_in(reports));
  arrive(0, {ns(10), ns(700)});
  const auto expected = system->completions({ns(10), ns(700), ns(10), ns(700)});
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].times, std::vector(expected.begin(), expected.begin() + 2));
  EXPECT_EQ(side->sums()[0].count, 3U);
  EXPECT_EQ(system->network.bytes()[0], Bytes(3 * 4 * 1536));
}

}  // namespace
}  // namespace orrery::communicator::test
