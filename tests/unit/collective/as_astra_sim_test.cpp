// The steps that ASTRA-sim takes (docs/collectives.md, As ASTRA-sim has it). Links of 10 B/ns and 100 ns a hop, an
// endpoint delay of 7 ns and a memory of 100 B/ns: a message of m bytes takes L = 100 h + m / 10 ns over h hops, its
// reduction 3 m / 100 ns.
#include <gtest/gtest.h>

#include <algorithm>

#include "system.hpp"

namespace orrery::collective {
namespace {

using topology::Shape;

AllRules astra_sim() {
  AllRules rules = AllRules::astra_sim();
  rules.two_directions = rules.turns_go_on = rules.sliding_windows = true;
  return rules;
}

std::vector<Time> finish(System& system, Kind kind, std::uint64_t bytes, const std::vector<Time>& arrivals, Turn turn) {
  std::vector<Time> completions(arrivals.size());
  system.engine.finish(*system.engine.layout({}, all_dimensions), kind, Bytes(bytes), arrivals, completions, turn);
  return completions;
}

// Three positions, L = 200, r = 30, first messages at 7, 17 and 27. Position 0 has both messages at 227; its credits
// come back at 217 + 37 and 227 + 37, when it sends to 1 and to 2. The others do so at 244 and 264, and at 244 and 254.
TEST(AsAstraSim, DirectSendsWithTheCreditsThatComeBack) {
  System system({dimension(Shape("FullyConnected"), 3)}, options_of({direct}), astra_sim());
  EXPECT_EQ(system.finish(Kind::all_reduce, 3000, at_ns({0, 10, 20})), at_ns({471, 461, 471}));
  EXPECT_EQ(system.together(Kind::all_reduce, 3000, 3), Time::from_ns(7 + 207 + 30 + 207));
}

// A window of 1 on a ring of 4, an all-to-all: L = 200, 300 and 200, one after the other.
TEST(AsAstraSim, AWindowSlides) {
  System system({dimension(Shape("Ring"), 4)}, options_of({Algorithm{"direct", 1, false}}), astra_sim());
  EXPECT_EQ(system.together(Kind::all_to_all, 4000, 4), Time::from_ns(7 + 207 + 307 + 207));
  // With a window of 2 the third message (L = 200) leaves at 214, with the credit of the first.
  System two({dimension(Shape("Ring"), 4)}, options_of({Algorithm{"direct", 2, false}}), astra_sim());
  EXPECT_EQ(two.together(Kind::all_to_all, 4000, 4), Time::from_ns(7 + 207 + 207));
}

// All-gathers on a ring of 3, L = 200; the last position comes late. One way round position 1 waits longest, the other
// way position 0.
TEST(AsAstraSim, TheSecondHalfOfTheQueuesGoesTheOtherWayRound) {
  Options options = options_of({ring});
  options.chunks.queues = options.chunks.splits = options.chunks.active_chunks = 2;
  System both({dimension(Shape("Ring"), 3)}, options, astra_sim());
  EXPECT_EQ(both.finish(Kind::all_gather, 2000, at_ns({0, 0, 1000})), at_ns({1421, 1421, 1021}));
  options.chunks.splits = 1;
  System one({dimension(Shape("Ring"), 3)}, options, astra_sim());
  const auto layout = one.engine.layout({}, all_dimensions);
  const Turn next = one.engine.next_turn({}, *layout, Kind::all_gather, Bytes(1000));
  EXPECT_EQ(next.queue(0, 2), 1U);
  EXPECT_EQ(finish(one, Kind::all_gather, 1000, at_ns({0, 0, 1000}), {}), at_ns({1221, 1421, 1021}));
  EXPECT_EQ(finish(one, Kind::all_gather, 1000, at_ns({0, 0, 1000}), next), at_ns({1421, 1221, 1021}));
  EXPECT_EQ(one.engine.next_turn(next, *layout, Kind::all_gather, Bytes(1000)), Turn());
}

// Two members: the root of a tree completes first. The next collective has the other tree.
TEST(AsAstraSim, TreesTakeTurns) {
  System system({dimension(Shape("Ring"), 2)}, options_of({double_binary_tree}), astra_sim());
  const auto layout = system.engine.layout({}, all_dimensions);
  const Turn next = system.engine.next_turn({}, *layout, Kind::all_reduce, Bytes(4000));
  EXPECT_TRUE(next.is_odd_tree(0, 1));
  const std::vector<Time> first = finish(system, Kind::all_reduce, 4000, std::vector<Time>(2), {});
  EXPECT_LT(first[1], first[0]);
  EXPECT_EQ(finish(system, Kind::all_reduce, 4000, std::vector<Time>(2), next),
            (std::vector<Time>{first[1], first[0]}));
  EXPECT_EQ(system.engine.least_duration(*layout, Kind::all_reduce, Bytes(4000)), first[1]);
}

/// ASTRA-sim's links of so many GB/s and 500 ns a hop.
topology::Dimension gigabytes(topology::Shape shape, std::uint32_t size, double rate) {
  return {shape, size, Bandwidth::from_bytes_per_ns(rate * 0x1p30 / 1e9), 500};
}

/// Options of the cases below, whose numbers are those of ASTRA-sim 2: 1000 GB/s of memory and an endpoint delay of 10.
Options chunked(std::vector<Algorithm> list, std::uint32_t splits, std::uint32_t active) {
  Options options = options_of(std::move(list));
  options.endpoint_delay = Time::from_ns(10);
  options.local_memory = Bandwidth::from_bytes_per_ns(1000);
  options.chunks.optimization = Optimization::baseline;
  options.chunks.splits = splits;
  options.chunks.active_chunks = active;
  return options;
}

// Both trees of the second dimension carry chunks, so that each NPU ends its own chunks at its own times.
TEST(AsAstraSim, MembersOfATreeInTheLastDimensionEndApart) {
  System system({gigabytes(Shape("Switch"), 2, 100), gigabytes(Shape("Ring"), 4, 100)},
                chunked({ring, double_binary_tree}, 4, 2), astra_sim());
  EXPECT_EQ(system.finish(Kind::all_reduce, 1 << 20, std::vector<Time>(8)),
            at_ns({32256, 32256, 35207, 35207, 32256, 32256, 35207, 35207}));
}

// An all-reduce over the second dimension alone turns the trees of that dimension for all collectives of the NPU.
TEST(AsAstraSim, TreesTakeTurnsInEachDimension) {
  System system({gigabytes(Shape("Ring"), 4, 100), gigabytes(Shape("Switch"), 2, 100)},
                chunked({ring, double_binary_tree}, 1, 1), astra_sim());
  const auto second = system.engine.layout(system.engine.split(NpuId(0), 2), 2);
  const Turn next = system.engine.next_turn({}, *second, Kind::all_reduce, Bytes(1 << 20));
  EXPECT_TRUE(next.is_odd_tree(1, 1));
  EXPECT_FALSE(next.is_odd_tree(0, 1));
  const std::vector<Time> arrivals =
      system.finish(Kind::all_reduce, 1 << 20, std::vector<Time>(2), system.engine.split(NpuId(0), 2), 2);
  std::vector<Time> both(8, arrivals[0]);
  std::fill(both.begin() + 4, both.end(), arrivals[1]);
  std::vector<Time> expected(8, Time::from_ns(47932));
  std::fill(expected.begin() + 4, expected.end(), Time::from_ns(58707));
  EXPECT_EQ(finish(system, Kind::all_reduce, 1 << 20, both, next), expected);
  // Groups of some NPUs use a ring, which turns no tree.
  const auto some = system.engine.layout(npus({0, 1, 2}), all_dimensions);
  EXPECT_EQ(system.engine.next_turn(next, *some, Kind::all_reduce, Bytes(1 << 20)), next);
}

// NPU 4 comes 1 us late. Others serve their chunks in the order in which these come to them.
TEST(AsAstraSim, EachMemberServesItsOwnQueues) {
  Options options = chunked({ring, direct, direct}, 3, 3);
  options.chunks.optimization = Optimization::local_bw_aware;
  System system(
      {gigabytes(Shape("Switch"), 2, 50), gigabytes(Shape("Switch"), 2, 50), gigabytes(Shape("FullyConnected"), 3, 32)},
      options, astra_sim());
  std::vector<Time> arrivals(12);
  arrivals[4] = Time::from_ns(1000);
  EXPECT_EQ(system.finish(Kind::all_reduce, 1 << 20, arrivals),
            at_ns({22235, 25804, 22235, 23177, 22235, 25804, 22235, 23177, 22235, 25804, 22235, 23177}));
}

// A group of all NPUs that is listed out of order is the world, whose members stand by their ids.
TEST(AsAstraSim, AGroupOfAllStandsByIds) {
  System system({gigabytes(Shape("Ring"), 4, 100)}, options_of({Algorithm{"direct", 1, true}}), astra_sim());
  const std::vector<Time> world = system.finish(Kind::all_to_all, 1 << 20, at_ns({0, 100, 200, 700}));
  EXPECT_EQ(system.finish(Kind::all_to_all, 1 << 20, at_ns({700, 0, 200, 100}), npus({3, 0, 2, 1})),
            (std::vector<Time>{world[3], world[0], world[2], world[1]}));
}

// A member that comes late lets others end an all-reduce with a window of 2 earlier, but not before the least duration.
TEST(AsAstraSim, OthersMayGainFromALateMember) {
  System system({dimension(Shape("FullyConnected"), 4)}, options_of({{"direct", 2, false}}), astra_sim());
  const auto layout = system.engine.layout({}, all_dimensions);
  const std::vector<Time> together = finish(system, Kind::all_reduce, 4000, std::vector<Time>(4), {});
  Time earliest = Time::max();
  for (int late = 0; late < 500; ++late)
    earliest = std::min(earliest, std::ranges::min(finish(system, Kind::all_reduce, 4000, at_ns({late, 0, 0, 0}), {})));
  EXPECT_LT(earliest, std::ranges::min(together));
  EXPECT_LE(system.engine.least_duration(*layout, Kind::all_reduce, Bytes(4000)), earliest);
}

// Three of four NPUs, e = 10, L = 200, r = 30: direct stays if it is the only entry, and reduces in both halves.
TEST(AsAstraSim, ASmallerGroupKeepsTheOnlyAlgorithm) {
  const std::vector<NpuId> members{NpuId(0), NpuId(1), NpuId(2)};
  System one({dimension(Shape("FullyConnected"), 4)}, options_of({direct}), astra_sim());
  const Time reduced = Time::from_ns(10 + 2 * (210 + 30));
  EXPECT_EQ(one.finish(Kind::all_reduce, 3000, std::vector<Time>(3), members), std::vector<Time>(3, reduced));
  const std::vector<topology::Dimension> wide{dimension(Shape("FullyConnected"), 4), dimension(Shape("Ring"), 2)};
  System several(wide, options_of({direct, direct}), astra_sim());
  const Time round = Time::from_ns(10 + 4 * 210 + 2 * 30);
  EXPECT_EQ(several.finish(Kind::all_reduce, 3000, std::vector<Time>(3), members), std::vector<Time>(3, round));
  // Halving-doubling needs a power of two.
  System halving({dimension(Shape("FullyConnected"), 4)}, options_of({halving_doubling}), astra_sim());
  EXPECT_EQ(halving.finish(Kind::all_reduce, 3000, std::vector<Time>(3), members), std::vector<Time>(3, round));
}

// Messages of 2030 and 1015 bytes, and back of 1014 and 2028.
TEST(AsAstraSim, HalvingDoublingTurnsBackWithWholeBytes) {
  System system({dimension(Shape("Ring"), 4)}, options_of({halving_doubling}), astra_sim());
  EXPECT_EQ(system.together(Kind::all_reduce, 4060, 4), Time::from_ns(7 + 303 + 7 + 30 + 301 + 7 + 301 + 7 + 302 + 7));
}

// 24,000 B at 1600 B/ns: 24000 / 1.6e12 * 1e9 is 14.99... ns in doubles.
TEST(AsAstraSim, ReductionsAreCutAsQuotientsOfSeconds) {
  const Bandwidth memory = Bandwidth::from_bytes_per_ns(1600);
  EXPECT_EQ(local_memory_delay(Bytes(24000), memory, Rounding::down_to_ns), Time::from_ns(14));
  EXPECT_EQ(local_memory_delay(Bytes(24000), memory, Rounding::up_to_ps), Time::from_ns(15));
}

}  // namespace
}  // namespace orrery::collective
