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

// Three positions, L = 200, r = 30, first messages at 7, 17 and 27. Position 0 has both messages at 227; its credits come
// back at 217 + 37 and 227 + 37, when it sends to 1 and to 2. The others do so at 244 and 264, and at 244 and 254.
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
  EXPECT_EQ(next, Turn(1, false));
  EXPECT_EQ(finish(one, Kind::all_gather, 1000, at_ns({0, 0, 1000}), {}), at_ns({1221, 1421, 1021}));
  EXPECT_EQ(finish(one, Kind::all_gather, 1000, at_ns({0, 0, 1000}), next), at_ns({1421, 1221, 1021}));
  EXPECT_EQ(one.engine.next_turn(next, *layout, Kind::all_gather, Bytes(1000)), Turn());
}

// Two members: the root of a tree completes first. The next collective has the other tree.
TEST(AsAstraSim, TreesTakeTurns) {
  System system({dimension(Shape("Ring"), 2)}, options_of({double_binary_tree}), astra_sim());
  const auto layout = system.engine.layout({}, all_dimensions);
  const Turn next = system.engine.next_turn({}, *layout, Kind::all_reduce, Bytes(4000));
  EXPECT_EQ(next, Turn(0, true));
  const std::vector<Time> first = finish(system, Kind::all_reduce, 4000, std::vector<Time>(2), {});
  EXPECT_LT(first[1], first[0]);
  EXPECT_EQ(finish(system, Kind::all_reduce, 4000, std::vector<Time>(2), next), (std::vector<Time>{first[1], first[0]}));
  EXPECT_EQ(system.engine.least_duration(*layout, Kind::all_reduce, Bytes(4000)), first[1]);
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
