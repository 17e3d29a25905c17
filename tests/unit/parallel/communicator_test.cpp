#include "orrery/parallel/communicator.hpp"

#include <gtest/gtest.h>

#include "mpi_world.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/parallel/lead.hpp"

namespace orrery::parallel {
namespace {

using orrery::test::me;
using orrery::test::world;

// Each rank brings values that depend on its number. All ranks get the sums, the minima and the maxima over all ranks.
TEST(Communicator, Reduces) {
  const auto n = world().size();
  std::vector<std::int64_t> sum{1, me()}, least{me(), -me()}, most{me(), -me()};
  world().sum(sum);
  world().minimum(least);
  world().maximum(most);
  EXPECT_EQ(sum, (std::vector<std::int64_t>{n, n * (n - 1) / 2}));
  EXPECT_EQ(least, (std::vector<std::int64_t>{0, -(n - 1)}));
  EXPECT_EQ(most, (std::vector<std::int64_t>{n - 1, 0}));
}

// Rank r brings r values. The root, which is each rank in turn, gets all of them in rank order with their counts, and
// the others get nothing.
TEST(Communicator, GathersInRankOrder) {
  for (int root = 0; root < world().size(); ++root) {
    const std::vector<int> mine(static_cast<std::size_t>(me()), me());
    std::vector<std::size_t> counts;
    const auto all = world().gather(std::span<const int>(mine), Rank(root), &counts);
    if (me() != root) {
      EXPECT_TRUE(all.empty());
      continue;
    }
    std::vector<int> expected;
    for (int r = 0; r < world().size(); ++r) {
      EXPECT_EQ(counts.at(static_cast<std::size_t>(r)), static_cast<std::size_t>(r));
      expected.insert(expected.end(), static_cast<std::size_t>(r), r);
    }
    EXPECT_EQ(all, expected);
  }
}

// Each rank brings one value. All ranks get all values in rank order.
TEST(Communicator, GathersOnEveryRank) {
  const std::vector<double> mine{me() + 0.5};
  std::vector<std::size_t> counts;
  const auto all = world().all_gather(std::span<const double>(mine), &counts);
  ASSERT_EQ(all.size(), static_cast<std::size_t>(world().size()));
  for (int r = 0; r < world().size(); ++r) EXPECT_EQ(all[static_cast<std::size_t>(r)], r + 0.5);
  EXPECT_EQ(counts, std::vector<std::size_t>(all.size(), 1));
}

// Each rank in turn is the root of a text and of an empty list. All ranks then have what the root had, whatever they
// had before.
TEST(Communicator, Broadcasts) {
  for (int root = 0; root < world().size(); ++root) {
    std::string text = me() == root ? "from " + std::to_string(root) : "something longer that is to be replaced";
    world().broadcast(text, Rank(root));
    EXPECT_EQ(text, "from " + std::to_string(root));
    std::vector<int> none(me() == root ? 0U : 3U);
    world().broadcast(none, Rank(root));
    EXPECT_TRUE(none.empty());
  }
}

// Rank a sends a + b values to rank b, so some get nothing. Each rank gets from each other one what was meant for it.
TEST(Communicator, Exchanges) {
  const auto value = [](int from, int to) { return 100 * from + to; };
  std::vector<std::vector<int>> outgoing;
  for (int to = 0; to < world().size(); ++to)
    outgoing.emplace_back(static_cast<std::size_t>(me() + to), value(me(), to));
  const auto incoming = world().exchange(outgoing);
  ASSERT_EQ(incoming.size(), outgoing.size());
  for (int from = 0; from < world().size(); ++from)
    EXPECT_EQ(incoming[static_cast<std::size_t>(from)],
              std::vector<int>(static_cast<std::size_t>(me() + from), value(from, me())));
}

// Each rank sends 2.4 MB to each rank, more than MPI sends at once. All of it arrives.
TEST(Communicator, ExchangesLargeMessages) {
  std::vector<std::vector<std::uint64_t>> outgoing(
      static_cast<std::size_t>(world().size()), std::vector<std::uint64_t>(300'000, static_cast<std::uint64_t>(me())));
  const auto incoming = world().exchange(outgoing);
  for (std::size_t from = 0; from < incoming.size(); ++from) {
    ASSERT_EQ(incoming[from].size(), 300'000U);
    EXPECT_EQ(incoming[from].front(), from);
    EXPECT_EQ(incoming[from].back(), from);
  }
}

// All ranks from `lowest` on throw in a section that all agree on. The lowest of them throws its own error, and all
// others throw that another rank failed, with the exit code of that error.
TEST(Communicator, TheLowestFailingRankSpeaks) {
  for (int lowest = 0; lowest < world().size(); ++lowest) {
    const auto body = [&] {
      if (me() >= lowest)
        throw Error(lowest % 2 == 0 ? ErrorCode::bad_input : ErrorCode::output, "rank " + std::to_string(me()));
    };
    try {
      world().agree(body);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(me(), lowest);
      EXPECT_EQ(std::string(error.what()), "rank " + std::to_string(lowest));
    } catch (const FailedElsewhere& failure) {
      EXPECT_NE(me(), lowest);
      EXPECT_EQ(failure.exit_code, lowest % 2 == 0 ? 3 : 5);
    }
    EXPECT_TRUE(world().failure_is_agreed());
  }
}

// The last rank throws an exception that is no Error. It passes through there, and the other ranks fail with the exit
// code of an internal error.
TEST(Communicator, OtherExceptionsAreInternal) {
  const int last = world().size() - 1;
  try {
    world().agree([&] {
      if (me() == last) throw std::runtime_error("odd");
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(me(), last);
  } catch (const FailedElsewhere& failure) {
    EXPECT_NE(me(), last);
    EXPECT_EQ(failure.exit_code, 1);
  }
}

// No rank throws in a section that all agree on. Each rank runs it once and none throws.
TEST(Communicator, AgreesOnSuccess) {
  int calls = 0;
  EXPECT_NO_THROW(world().agree([&] { ++calls; }));
  EXPECT_EQ(calls, 1);
}

// Rank 0 leads: it works alone and says once that its next sign may come 7 s later. Every rank has seen heartbeats.
TEST(Lead, LetsTheHeartsOfAllRanksBeat) {
  JobContext job;
  const JobContext::Scope scope(job);
  const std::uint64_t before = job.heartbeat.count();
  std::uint32_t allowed = 0;
  int calls = 0;
  lead(world(), [&](const GivesSigns& give_sign) {
    ++calls;
    give_sign(0);
    give_sign(7);
    allowed = job.heartbeat.allowance();
  });
  EXPECT_EQ(calls, me() == 0 ? 1 : 0);
  EXPECT_EQ(allowed, me() == 0 ? 7U : 0U);
  EXPECT_GE(job.heartbeat.count(), before + 2);
}

// Rank 0 fails while it leads. It throws its error, and the others wait no longer.
TEST(Lead, EndsWithAFailure) {
  const auto fail = [](const GivesSigns&) { throw Error(ErrorCode::output, "no"); };
  if (me() == 0)
    EXPECT_THROW(lead(world(), fail), Error);
  else
    EXPECT_NO_THROW(lead(world(), fail));
}

// A communicator of one process is made without MPI. It is the root, gathers and exchanges what it brings itself, and
// throws its own errors.
TEST(Serial, IsOneRankWithoutMpi) {
  const auto alone = make_serial();
  EXPECT_EQ(alone->size(), 1);
  EXPECT_TRUE(alone->is_root());
  alone->barrier();
  const std::vector<int> mine{1, 2};
  EXPECT_EQ(alone->all_gather(std::span<const int>(mine)), mine);
  EXPECT_EQ(alone->exchange(std::vector<std::vector<int>>{mine}), std::vector<std::vector<int>>{mine});
  EXPECT_FALSE(alone->failure_is_agreed());
  EXPECT_THROW(alone->agree([] { throw Error(ErrorCode::usage, "no"); }), Error);
  EXPECT_TRUE(alone->failure_is_agreed());
}

}  // namespace
}  // namespace orrery::parallel
