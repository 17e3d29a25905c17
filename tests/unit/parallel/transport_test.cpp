#include "orrery/parallel/transport.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "mpi_world.hpp"
#include "orrery/base/error.hpp"

namespace orrery::parallel {
namespace {

using orrery::test::me;
using orrery::test::world;

/// Message `number` of a channel: its number, then bytes that depend on it; lengths go from nothing to beyond what MPI
/// sends at once.
std::vector<std::byte> message(std::uint32_t number) {
  const std::size_t length = number % 50 == 49 ? 200'000 : number * 37 % 300;
  std::vector<std::byte> bytes(sizeof number + length, static_cast<std::byte>(number));
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

// Each rank sends 400 messages of many sizes to each other rank and overwrites its buffer after each. Each receiver
// gets the messages of a sender in order, byte by byte, and nothing more.
TEST(Transport, KeepsTheOrderOfEachChannel) {
  constexpr std::uint32_t count = 400;
  const auto transport = make_transport(world());
  const auto ranks = static_cast<std::size_t>(world().size());
  std::vector<std::uint32_t> received(ranks);
  const auto take = [&](Rank from, std::span<const std::byte> bytes) {
    const auto expected = message(received[from.index()]++);
    ASSERT_EQ(bytes.size(), expected.size());
    EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
  };
  std::vector<std::byte> buffer;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::size_t to = 0; to < ranks; ++to) {
      if (static_cast<int>(to) == me()) continue;
      buffer = message(i);
      transport->send(Rank(static_cast<int>(to)), buffer);
      std::fill(buffer.begin(), buffer.end(), std::byte{0xff});  // the transport has its own copy
    }
    if (i % 3 == 0) transport->poll(take);
  }
  std::size_t total = 0;
  do {
    transport->poll(take);
    total = 0;
    for (const auto n : received) total += n;
  } while (total < count * (ranks - 1));
  EXPECT_EQ(received[world().rank().index()], 0U);
  world().barrier();
  EXPECT_EQ(transport->poll(take), 0);
}

// Each rank sends one empty message to each other rank. The numbers that poll returns add up to the number of messages
// that it handed over.
TEST(Transport, ReportsTheNumberOfMessages) {
  const auto transport = make_transport(world());
  int calls = 0, reported = 0;
  const auto count = [&](Rank, std::span<const std::byte> bytes) { calls += bytes.empty() ? 1 : 0; };
  for (int to = 0; to < world().size(); ++to)
    if (to != me()) transport->send(Rank(to), {});
  while (reported < world().size() - 1) reported += transport->poll(count);
  EXPECT_EQ(calls, world().size() - 1);
}

// Rank 0 sends long messages to the last rank, which looks at none of them for a while. The transport of rank 0 says
// that they are under way, and says so no more when they have been taken.
TEST(Transport, KnowsWhatNobodyHasTaken) {
  constexpr std::size_t size = 1 << 20;
  constexpr std::uint64_t count = 10;
  const auto transport = make_transport(world());
  if (world().size() == 1) {
    EXPECT_EQ(transport->bytes_under_way(0), 0U);
    return;
  }
  const int last = world().size() - 1;
  const auto ignore = [](Rank, std::span<const std::byte>) {};
  if (me() == 0) {
    for (std::uint64_t i = 0; i < count; ++i) transport->send(Rank(last), std::vector<std::byte>(size));
    EXPECT_GE(transport->bytes_under_way(0), count * size / 2);  // MPI may have copied some
    EXPECT_EQ(transport->bytes_under_way(20 * size), 0U);
  }
  world().barrier();
  if (me() == last)
    for (std::uint64_t taken = 0; taken < count;) taken += static_cast<std::uint64_t>(transport->poll(ignore));
  while (me() == 0 && transport->bytes_under_way(0) > 0) transport->poll(ignore);
  world().barrier();
}

// All ranks take part in 50 reductions, one after the other. Each gives the minima and the sums of its own round.
TEST(Transport, ReducesAgainAndAgain) {
  const auto transport = make_transport(world());
  const auto n = world().size();
  for (std::int64_t round = 0; round < 50; ++round) {
    const std::vector<std::int64_t> minima{round + me(), -me(), 7}, sums{round, me()};
    transport->start_reduction(minima, sums);
    std::optional<Transport::Reduced> reduced;
    while (!reduced) {
      transport->poll([](Rank, std::span<const std::byte>) {});
      reduced = transport->finish_reduction();
    }
    EXPECT_EQ(std::vector(reduced->minima.begin(), reduced->minima.end()),
              (std::vector<std::int64_t>{round, -(n - 1), 7}));
    EXPECT_EQ(std::vector(reduced->sums.begin(), reduced->sums.end()),
              (std::vector<std::int64_t>{n * round, n * (n - 1) / 2}));
  }
}

// All ranks but rank 0 start a reduction. It does not end before rank 0 has started it too, and then it ends on all
// ranks.
TEST(Transport, AReductionWaitsForAllRanks) {
  const auto transport = make_transport(world());
  const std::vector<std::int64_t> minima{1}, sums{1};
  if (me() != 0) {
    transport->start_reduction(minima, sums);
    if (world().size() > 1) {
      EXPECT_FALSE(transport->finish_reduction());
    }
  }
  world().barrier();
  if (me() == 0) transport->start_reduction(minima, sums);
  while (!transport->finish_reduction()) {
  }
}

// A transport has only one rank. A send throws an error, and a poll finds nothing.
TEST(Transport, AloneSendsNothing) {
  const auto alone = make_serial();
  const auto transport = make_transport(*alone);
  EXPECT_THROW(transport->send(Rank(0), {}), Error);
  EXPECT_EQ(transport->poll([](Rank, std::span<const std::byte>) {}), 0);
}

}  // namespace
}  // namespace orrery::parallel
