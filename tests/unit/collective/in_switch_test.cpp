#include <gtest/gtest.h>

#include <string>

#include "system.hpp"

namespace orrery::collective {
namespace {

using topology::Shape;

// Links of 10 B/ns and 100 ns a hop, an endpoint delay of 7 ns and a memory of 100 B/ns: a message of m bytes through a
// switch takes L = 200 + m / 10 ns, its reduction by an NPU r = 3 m / 100 ns.
topology::Dimension switch_of(std::uint32_t size, std::uint32_t operations) {
  return {Shape("Switch"), size, Bandwidth::from_bytes_per_ns(10), 100, operations};
}

// 4 NPUs, 4000 B: up and down together e + 200 + 400 + e. An all-gather receives three shards of 4000 B. A scatter's
// root sends three quarters.
TEST(InSwitch, TimeAndBytes) {
  System system({switch_of(4, 1)}, options_of({in_switch}));
  EXPECT_EQ(system.together(Kind::all_reduce, 4000, 4), Time::from_ns(614));
  EXPECT_EQ(system.together(Kind::reduce_scatter, 4000, 4), Time::from_ns(614));
  EXPECT_EQ(system.together(Kind::all_gather, 4000, 4), Time::from_ns(7 + 200 + 1200 + 7));
  EXPECT_EQ(system.together(Kind::broadcast, 4000, 4), Time::from_ns(614));
  EXPECT_EQ(system.together(Kind::scatter, 4000, 4), Time::from_ns(7 + 200 + 300 + 7));
  EXPECT_EQ(system.sent(Kind::all_reduce, 4000), 4000);
  EXPECT_EQ(system.sent(Kind::reduce_scatter, 4000), 4000);
  EXPECT_EQ(system.sent(Kind::all_gather, 4000), 4000);
  EXPECT_EQ(system.sent(Kind::broadcast, 4000), 1000);
  EXPECT_EQ(system.sent(Kind::reduce, 4000), 4000);
  EXPECT_EQ(system.sent(Kind::scatter, 4000), 750);
}

// Nothing leaves the switch before the last is there: all complete together.
TEST(InSwitch, WaitsForTheLast) {
  System system({switch_of(3, 1)}, options_of({in_switch}));
  EXPECT_EQ(system.finish(Kind::all_reduce, 4000, at_ns({0, 50, 1000})), at_ns({1614, 1614, 1614}));
}

// The clear to send of the last receiver, 8192 B, comes first: e + 200 + 819.2, then 200 + 400 + e.
TEST(InSwitch, Rendezvous) {
  Options options = options_of({in_switch});
  options.rendezvous = true;
  EXPECT_EQ(System({switch_of(4, 1)}, options).together(Kind::all_reduce, 4000, 4), Time::from_ps(1'633'200));
}

// NPU 1 has half the bandwidth and twice the latency. An all-reduce waits for its 4000 B (800 ns, 200 ns a hop) and
// takes the slower latency of each pair, as messages do. In an all-gather only NPU 1 receives at half the rate: three
// shards of 4000 B are 2400 ns, the others' are 1200, more than the 800 of NPU 1's own shard.
TEST(InSwitch, SlowLink) {
  topology::Links links(std::vector<topology::Dimension>{switch_of(4, 1)});
  links.add({0, npus({1}), {0.5, 2}, false});
  System system({switch_of(4, 1)}, options_of({in_switch}), {}, links);
  const Time slow = Time::from_ns(7 + 400 + 800 + 7);
  EXPECT_EQ(system.finish(Kind::all_reduce, 4000, std::vector<Time>(4)), std::vector<Time>(4, slow));
  EXPECT_EQ(system.finish(Kind::all_gather, 4000, std::vector<Time>(4)), at_ns({1614, 2814, 1614, 1614}));
}

// Switch(2) x Switch(4), local_bw_aware: reduce-scatter and all-gather in the first switch, 4000 B and shards of
// 2000 B; a ring in the second: e + 6 (L(500) + e) + 3 r(500).
TEST(InSwitch, OneOfTwoDimensions) {
  System system({switch_of(2, 1), switch_of(4, 0)}, options_of({in_switch, ring}));
  EXPECT_EQ(system.together(Kind::all_reduce, 4000, 8), Time::from_ns(614 + (7 + 6 * 257 + 45) + (7 + 200 + 200 + 7)));
}

// Four chunks of 1000 B. One at a time: 4 x 314 ns. Two at a time share the link: 2 x (14 + 200 + 200). A switch that
// carries out one operation at a time lets the other chunks wait, whatever active chunks say.
TEST(InSwitch, ChunksWaitForTheSwitch) {
  Options options = options_of({in_switch});
  options.chunks.splits = 4;
  EXPECT_EQ(System({switch_of(4, 1)}, options).together(Kind::all_reduce, 4000, 4), Time::from_ns(4 * 314));
  options.chunks.active_chunks = 2;
  EXPECT_EQ(System({switch_of(4, 1)}, options).together(Kind::all_reduce, 4000, 4), Time::from_ns(4 * 314));
  EXPECT_EQ(System({switch_of(4, 2)}, options).together(Kind::all_reduce, 4000, 4), Time::from_ns(2 * 414));
  EXPECT_EQ(System({switch_of(4, 9)}, options).together(Kind::all_reduce, 4000, 4), Time::from_ns(2 * 414));
  options.collectives_at_a_time = 2;
  EXPECT_EQ(System({switch_of(4, 2)}, options).together(Kind::all_reduce, 4000, 4), Time::from_ns(4 * 314));
}

// Half of the switch's NPUs have half of its operations, and half of that with two collectives each.
TEST(InSwitch, ShareOfAGroup) {
  Options options = options_of({in_switch});
  EXPECT_EQ(System({switch_of(8, 2)}, options).refusal(Kind::all_reduce, npus({0, 1, 4, 5})), "accepted");
  EXPECT_EQ(System({switch_of(8, 1)}, options).refusal(Kind::all_reduce), "accepted");
  EXPECT_EQ(
      System({switch_of(8, 1)}, options).fault(Kind::all_reduce, npus({0, 1, 4, 5})),
      "dimension 0: inSwitch does not carry out all-reduce of 4 NPUs: of the 1 operation that its switch offers "
      "to 8 NPUs with 1 collective each, 4 NPUs have a share of 0, and 1 queue of the dimension needs 1 at least");
  options.collectives_at_a_time = 2;
  EXPECT_NE(System({switch_of(8, 2)}, options).refusal(Kind::all_reduce, npus({0, 1, 4, 5})).find("2 collectives each"),
            std::string::npos);
  options.chunks.queues = 3;
  EXPECT_NE(System({switch_of(8, 4)}, options).refusal(Kind::all_reduce).find("share of 2, and 3 queues"),
            std::string::npos);
}

// An algorithm in the switch is chosen for a ring, for a switch without operations, or for a kind that no switch
// carries out. The error says which of these it is.
TEST(InSwitch, RefusesWhatNoSwitchCarriesOut) {
  const Options options = options_of({in_switch});
  topology::Dimension of_ring = switch_of(4, 0);
  of_ring.shape = Shape("Ring");
  EXPECT_NE(System({of_ring}, options)
                .refusal(Kind::all_reduce)
                .find("dimension 0: inSwitch does not carry out all-reduce of 4 NPUs: the dimension is a Ring"),
            std::string::npos);
  EXPECT_NE(System({switch_of(4, 0)}, options).refusal(Kind::all_gather).find("in-switch-operations is 0"),
            std::string::npos);
  EXPECT_NE(System({switch_of(4, 1)}, options)
                .refusal(Kind::all_to_all)
                .find("it carries out all-reduce, all-gather, reduce-scatter, broadcast, reduce"),
            std::string::npos);
  of_ring.in_switch_operations = 1;
  EXPECT_THROW(topology::Topology({of_ring}), Error);
}

// Whatever the arrivals, rotating the positions of a switch changes nothing; slow links tell positions apart.
TEST(InSwitch, PlacesAreAlike) {
  System system({switch_of(6, 1)}, options_of({in_switch}));
  const auto layout = system.engine.layout({}, all_dimensions);
  const std::vector<Kind> kinds{Kind::all_reduce, Kind::all_gather};
  const std::vector<std::uint32_t> marks{1, 2, 1, 2, 1, 2};
  EXPECT_EQ(system.engine.equivalence_classes(*layout, kinds, marks), (std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1}));
}

// 4 NPUs, 4000 B, L = 600: two steps up with a reduction of 120, two down. 3 NPUs: NPU 2 sends in the second step,
// when it has waited for nobody, so that NPU 0 has its data at 607 while it is at 734 itself.
TEST(BinomialTree, AllReduce) {
  System four({switch_of(4, 0)}, options_of({binomial_tree}));
  EXPECT_EQ(four.together(Kind::all_reduce, 4000, 4), Time::from_ns(7 + 2 * 727 + 2 * 607));
  EXPECT_EQ(four.sent(Kind::all_reduce, 4000), 6000);
  System three({switch_of(3, 0)}, options_of({binomial_tree}));
  // NPU 0 is at 734 + 127 = 861; it tells NPU 2 until 1468, and then NPU 1 until 2075.
  EXPECT_EQ(three.finish(Kind::all_reduce, 4000, std::vector<Time>(3)), at_ns({2075, 2075, 1468}));
}

// Broadcast down, reduce up; nobody is done before all have begun. NPU 3 of 4 comes late: the root of the broadcast
// has told NPU 2 until 614 and NPU 1 until 1221, and waits for NPU 3 to begin at 5007.
TEST(BinomialTree, BroadcastAndReduceOfTheirOwn) {
  Options options = options_of({ring});
  options.broadcast = options.reduce = {binomial_tree};
  System system({switch_of(4, 0)}, options);
  EXPECT_EQ(system.together(Kind::broadcast, 4000, 4), Time::from_ns(7 + 2 * 607));
  EXPECT_EQ(system.finish(Kind::broadcast, 4000, at_ns({0, 0, 0, 5000})), at_ns({5014, 5014, 5014, 5014}));
  EXPECT_EQ(system.finish(Kind::broadcast, 4000, at_ns({5000, 0, 0, 0})), at_ns({6221, 6221, 6221, 6221}));
  EXPECT_EQ(system.finish(Kind::reduce, 4000, std::vector<Time>(4)), at_ns({7 + 2 * 727, 614, 734 + 607, 614}));
  EXPECT_EQ(system.sent(Kind::broadcast, 4000), 3000);
  EXPECT_EQ(system.engine.minimum_duration(*system.engine.layout({}, all_dimensions)), Time::from_ns(14));
}

// Switch(2) x Switch(4): from NPU 0 down the second dimension, 3 x 4000 B in one group, then 4000 B in each of 4
// groups. The reduce goes the other way.
TEST(BinomialTree, BroadcastOverTwoDimensions) {
  Options options = options_of({ring, ring});
  options.broadcast = options.reduce = {in_switch, binomial_tree};
  System system({switch_of(2, 1), switch_of(4, 0)}, options);
  EXPECT_EQ(system.together(Kind::broadcast, 4000, 8), Time::from_ns((7 + 2 * 607) + 614));
  const auto layout = system.engine.layout({}, all_dimensions);
  EXPECT_EQ(system.engine.traffic(*layout, Kind::broadcast, Bytes(4000)),
            (CollectiveTraffic{Bytes(2000), Bytes(1500)}));
  EXPECT_EQ(system.engine.traffic(*layout, Kind::reduce, Bytes(4000)), (CollectiveTraffic{Bytes(4000), Bytes(1500)}));
}

// A broadcast by another algorithm is an all-reduce without reductions in each dimension: 4000 B whole in both.
TEST(BinomialTree, BroadcastByAnotherAlgorithm) {
  Options options = options_of({ring, ring});
  options.broadcast = {ring, binomial_tree};
  System system({switch_of(2, 0), switch_of(4, 0)}, options);
  EXPECT_EQ(system.together(Kind::broadcast, 4000, 8), Time::from_ns((7 + 2 * 607) + (7 + 2 * 407)));
}

// A binomial tree is chosen for an all-gather. The error names the kinds that it carries out.
TEST(BinomialTree, RefusesKindsWithoutATree) {
  System system({switch_of(4, 0)}, options_of({binomial_tree}));
  EXPECT_EQ(system.fault(Kind::all_gather),
            "dimension 0: binomialTree does not carry out all-gather of 4 NPUs: it carries out all-reduce, broadcast, "
            "reduce");
}

}  // namespace
}  // namespace orrery::collective
