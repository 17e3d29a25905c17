#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "system.hpp"

namespace orrery::collective {
namespace {

using topology::Shape;

// Every test uses links of 10 B/ns and 100 ns, an endpoint delay of 7 ns and a memory of 100 B/ns unless it says
// otherwise: a message of m bytes takes L = 100 h + m / 10 ns over h hops, its reduction r = 3 m / 100 ns.

/// 100 ns a hop, 10 B/ns.
network::DelayModel line_with_fault(topology::Shape shape, std::uint32_t size, const topology::LinkFault& fault) {
  const std::vector<topology::Dimension> dimensions = {{shape, size, Bandwidth::from_bytes_per_ns(10), 100}};
  topology::Links links(dimensions);
  links.add(fault);
  return test_support::delays(dimensions, {}, links);
}

// Ring of 4, 4000 B: m = 1000, L = 200, r = 30. All-reduce e + 6 (L + e) + 3 r; reduce-scatter e + 3 (L + e + r);
// all-to-all e + 6 (L + e); all-gather moves whole shards, m = 4000, L = 500: e + 3 (L + e).
TEST(Engine, Ring) {
  System system({dimension(Shape("Ring"), 4)}, options_of({ring}));
  EXPECT_EQ(system.together(Kind::all_reduce, 4000, 4), Time::from_ns(7 + 6 * 207 + 90));
  EXPECT_EQ(system.together(Kind::reduce_scatter, 4000, 4), Time::from_ns(7 + 3 * 237));
  EXPECT_EQ(system.together(Kind::all_to_all, 4000, 4), Time::from_ns(7 + 6 * 207));
  EXPECT_EQ(system.together(Kind::all_gather, 4000, 4), Time::from_ns(7 + 3 * 507));
}

// Direct on a ring of 4: the farthest is 2 hops away, and a link upwards carries 3 messages: one to the next position
// and two to the one after it. L = 200 + 300. All-reduce e + L + e + r + L + e. A window of 2 makes two rounds of the
// three distances, {1, 2} and {3}: L = 500, then 200; each of the reducing half pays r. Under astra-sim rules each
// message has all of the bandwidth.
TEST(Engine, Direct) {
  System system({dimension(Shape("Ring"), 4)}, options_of({direct}));
  EXPECT_EQ(system.together(Kind::all_reduce, 4000, 4), Time::from_ns(7 + 500 + 7 + 30 + 500 + 7));
  EXPECT_EQ(system.together(Kind::all_to_all, 4000, 4), Time::from_ns(7 + 500 + 7));
  System window({dimension(Shape("Ring"), 4)}, options_of({Algorithm{"direct", 2, false}}));
  EXPECT_EQ(window.together(Kind::all_reduce, 4000, 4), Time::from_ns(7 + 2 * (507 + 207) + 2 * 30));
  System astra({dimension(Shape("Ring"), 4)}, options_of({direct}), AllRules::astra_sim());
  EXPECT_EQ(astra.together(Kind::all_to_all, 4000, 4), Time::from_ns(7 + 300 + 7));
}

// 300 positions of a ring, of which half send upwards over a link: 150 * 151 / 2 messages of 10 B, and 150 hops.
TEST(Engine, DirectOnALargeRing) {
  System system({dimension(Shape("Ring"), 300)}, options_of({direct}));
  EXPECT_EQ(system.together(Kind::all_to_all, 3000, 300), Time::from_ns(7 + 15'000 + 11'325 + 7));
}

// One group over FullyConnected(5) x FullyConnected(8), 40 kB: m = 1000. A link of dimension 0 carries the messages to
// the 8 positions behind it, one of dimension 1 those from 5: L = 100 + 800 + 100 + 500.
TEST(Engine, DirectOverDimensions) {
  System system({dimension(Shape("FullyConnected"), 5), dimension(Shape("FullyConnected"), 8)},
                options_of({Algorithm{"direct", 0, true}}));
  EXPECT_EQ(system.together(Kind::all_to_all, 40'000, 40), Time::from_ns(7 + 1500 + 7));
}

// Ring over a mesh of 4: what the last position sends goes back over 3 hops, L = 300 + 100; else L = 200. All-reduce: 6
// steps, 7 e, 3 r: 139; and the longest 6 edges in a row that end in the member: a round of 1000 and two more.
// Direct: e + L to the farther end + e + r, where the link in the middle carries 4 messages each way: L = 300 + 400.
// Members 0, 2 and 3 as a ring have edges of 2, 1 and 3 hops.
TEST(Engine, Mesh) {
  System around({dimension(Shape("Mesh"), 4)}, options_of({ring}));
  EXPECT_EQ(around.finish(Kind::all_reduce, 4000, std::vector<Time>(4)), at_ns({1739, 1739, 1539, 1539}));
  System to_all({dimension(Shape("Mesh"), 4)}, options_of({direct}));
  EXPECT_EQ(to_all.finish(Kind::reduce_scatter, 4000, std::vector<Time>(4)), at_ns({744, 644, 644, 744}));
  const auto layout = around.engine.layout(npus({0, 2, 3}), all_dimensions);
  std::vector<Time> completions(3);
  around.engine.finish(*layout, Kind::reduce_scatter, Bytes(3000), std::vector<Time>(3), completions);
  EXPECT_EQ(completions, at_ns({681, 781, 581}));
}

// Halving-doubling on a ring of 4, 4000 B: messages of 2000 B to distance 1 and 1000 B to distance 2, then back.
// L = 300, and 200 + 200 because two messages to distance 2 pass a link, but 300 under astra-sim rules. Physical rules
// reduce both messages (60 + 30), astra-sim rules the second one's size only.
TEST(Engine, HalvingDoubling) {
  System physical({dimension(Shape("Ring"), 4)}, options_of({halving_doubling}));
  EXPECT_EQ(physical.together(Kind::reduce_scatter, 4000, 4), Time::from_ns(7 + 307 + 407 + 90));
  EXPECT_EQ(physical.together(Kind::all_reduce, 4000, 4), Time::from_ns(7 + 2 * (307 + 407) + 90));
  System astra({dimension(Shape("Ring"), 4)}, options_of({halving_doubling}), AllRules::astra_sim());
  EXPECT_EQ(astra.together(Kind::all_reduce, 4000, 4), Time::from_ns(7 + 4 * 307 + 30));
}

// Two members, one tree edge. Tree of chunk 0: root 1, leaf 0. The leaf sends at e, is there at e + L (L = 100 + 400),
// the root reduces 4000 B: up = e + L + e + r (r = 120); back: + L + e.
TEST(Engine, DoubleBinaryTreeOfTwo) {
  System system({dimension(Shape("Ring"), 2)}, options_of({double_binary_tree}));
  const std::vector<Time> completions = system.finish(Kind::all_reduce, 4000, std::vector<Time>(2));
  EXPECT_EQ(completions[1], Time::from_ns(7 + 500 + 7 + 120));
  EXPECT_EQ(completions[0], Time::from_ns(7 + 500 + 7 + 120 + 507));
}

// Any number of members: each completion waits for every arrival.
TEST(Engine, DoubleBinaryTreeWaitsForAll) {
  for (std::uint32_t n = 2; n < 20; ++n) {
    Options options = options_of({double_binary_tree});
    options.chunks.splits = 2;
    System system({dimension(Shape("Switch"), n)}, options);
    for (std::uint32_t late = 0; late < n; ++late) {
      std::vector<Time> arrivals(n);
      arrivals[late] = Time::from_ns(1'000'000);
      for (const Time time : system.finish(Kind::all_reduce, 4000, arrivals)) EXPECT_GT(time, arrivals[late]);
    }
  }
}

// NPU 1 is the root of the only chunk and comes last: it has only to begin.
TEST(Engine, RootOfATreeThatComesLast) {
  System system({dimension(Shape("Switch"), 2)}, options_of({double_binary_tree}));
  const Time done = system.finish(Kind::all_reduce, 4000, at_ns({0, 1'000'000}))[1] - Time::from_ns(1'000'000);
  EXPECT_EQ(done, Time::from_ns(7 + 120));
  EXPECT_LE(system.engine.minimum_duration(*system.engine.layout({}, all_dimensions)), done);
  Options no_memory = options_of({double_binary_tree});
  no_memory.local_memory = Bandwidth();
  System plain({dimension(Shape("Switch"), 2)}, no_memory);
  EXPECT_EQ(plain.finish(Kind::all_reduce, 4000, at_ns({0, 1'000'000}))[1], Time::from_ns(1'000'007));
  EXPECT_LE(plain.engine.minimum_duration(*plain.engine.layout({}, all_dimensions)), Time::from_ns(7));
}

// Ring(2) x FullyConnected(2), 4000 B, local_bw_aware: reduce-scatter of 4000 in dimension 0 (m = 2000: e + L + e + r =
// 7 + 300 + 7 + 60), all-reduce of 2000 in dimension 1 (m = 1000: 7 + 200 + 7 + 30 + 200 + 7), all-gather of 2000 in
// dimension 0 (m = 2000: 7 + 300 + 7). Baseline: all-reduces of 4000 (7 + 2 * 307 + 60) in each.
TEST(Engine, DimensionsInTurn) {
  System aware({dimension(Shape("Ring"), 2), dimension(Shape("FullyConnected"), 2)}, options_of({ring, direct}));
  EXPECT_EQ(aware.together(Kind::all_reduce, 4000, 4), Time::from_ns(374 + 451 + 314));
  Options options = options_of({ring, direct});
  options.chunks.optimization = Optimization::baseline;
  System baseline({dimension(Shape("Ring"), 2), dimension(Shape("FullyConnected"), 2)}, options);
  EXPECT_EQ(baseline.together(Kind::all_reduce, 4000, 4), Time::from_ns(2 * (7 + 2 * 307 + 60)));
}

// Ring of 2, all-to-all of 4 chunks of 1000 B (m = 500, L = 150, one step: e + L + e = 164): one after the other. Two
// in service under astra-sim rules take half the time; under physical rules each has half the bandwidth (L = 200, 214).
TEST(Engine, ChunksInService) {
  Options options = options_of({ring});
  options.chunks.splits = 4;
  EXPECT_EQ(System({dimension(Shape("Ring"), 2)}, options).together(Kind::all_to_all, 4000, 2), Time::from_ns(4 * 164));
  options.chunks.active_chunks = 2;
  EXPECT_EQ(System({dimension(Shape("Ring"), 2)}, options, AllRules::astra_sim()).together(Kind::all_to_all, 4000, 2),
            Time::from_ns(2 * 164));
  EXPECT_EQ(System({dimension(Shape("Ring"), 2)}, options).together(Kind::all_to_all, 4000, 2), Time::from_ns(2 * 214));
}

// 4001 B in 4: chunks of 1000 B, and the one byte left over makes a fifth of full size. 5 B in 4: chunks are raised to
// as many bytes as NPUs, 2 B (m = 1, L = 100.1). An all-gather of 3 B in 4: three chunks of 1 B, L = 100.1.
// One step of a ring of two: 7 + (100 + 50) + 7 = 164 ns for 500 of 1000 B. Chunk 1 begins with the other dimension.
TEST(Engine, RoundRobinOverDimensions) {
  Options options = options_of({ring, ring});
  options.chunks.splits = 2;
  const std::vector<topology::Dimension> dimensions = {dimension(Shape("Ring"), 2), dimension(Shape("Ring"), 2)};
  EXPECT_EQ(System(dimensions, options).together(Kind::all_to_all, 2000, 4), Time::from_ns(3 * 164));
  options.chunks.dimension_order = DimensionOrder::round_robin;
  EXPECT_EQ(System(dimensions, options).together(Kind::all_to_all, 2000, 4), Time::from_ns(2 * 164));
}

// Without memory and endpoint delays, links of 2.5 and 10 B/ns. Chunk 0 goes up: 200 ns in dimension 0 and 25 in
// dimension 1, and back; so chunk 1 goes dimension 1 first (50 ns) and then dimension 0 (100 ns). What each sends:
// halves of 1000 B where it comes first, of 500 B where second, twice.
TEST(Engine, ThemisLevelsTheLoad) {
  Options options = options_of({ring, ring});
  options.chunks.splits = 2;
  options.endpoint_delay = Time::zero();
  options.local_memory = Bandwidth::from_bytes_per_ns(0);
  topology::Dimension slow = dimension(Shape("Ring"), 2);
  slow.bandwidth = Bandwidth::from_bytes_per_ns(2.5);
  options.chunks.dimension_order = DimensionOrder::themis;
  System themis({slow, dimension(Shape("Ring"), 2)}, options);
  const auto layout = themis.engine.layout({}, all_dimensions);
  EXPECT_EQ(themis.engine.traffic(*layout, Kind::all_reduce, Bytes(2000)),
            (CollectiveTraffic{Bytes(1500), Bytes(1500)}));
  // Dimension 0: chunk 0 to 300, then its way back waits. Dimension 1: chunk 1 to 150, chunk 0 from 300 to 425.
  // Chunk 1 comes to dimension 0 at 150, is there from 300 to 500 and on its way back from 500 to 700; chunk 0, which
  // came to dimension 1 for its way back at 425, is through at 550 and comes to dimension 0, which is its own from 700
  // to 1000. Chunk 1 is back in dimension 1 from 700 to 850.
  EXPECT_EQ(themis.together(Kind::all_reduce, 2000, 4), Time::from_ns(1000));
  options.chunks.dimension_order = DimensionOrder::ascending;
  System ascending({slow, dimension(Shape("Ring"), 2)}, options);
  EXPECT_EQ(ascending.engine.traffic(*ascending.engine.layout({}, all_dimensions), Kind::all_reduce, Bytes(2000)),
            (CollectiveTraffic{Bytes(2000), Bytes(1000)}));
}

// As ChunksInService: one step of 7 + (100 + 100) + 7 ns, of which 100 ns are bytes; the second chunk begins after
// those.
TEST(Engine, LatencyOverlaps) {
  Options options = options_of({ring});
  options.chunks.splits = 2;
  EXPECT_EQ(System({dimension(Shape("Ring"), 2)}, options).together(Kind::all_gather, 2000, 2), Time::from_ns(428));
  options.chunks.overlap_latency = true;
  System system({dimension(Shape("Ring"), 2)}, options);
  EXPECT_EQ(system.together(Kind::all_gather, 2000, 2), Time::from_ns(314));
  // Who is late by 50 ns sends chunk 0 until 157 and chunk 1 from then on, whatever it has received.
  const auto late = system.finish(Kind::all_gather, 2000, {Time::zero(), Time::from_ns(50)});
  EXPECT_EQ(late, (std::vector<Time>{Time::from_ns(364), Time::from_ns(364)}));
}

// Four chunks are to be made of 4001, 5 and 3 bytes in a ring of two. A remainder makes a fifth chunk, and chunks have
// one byte at least.
TEST(Engine, RemainderAndSmallChunks) {
  Options options = options_of({ring});
  options.chunks.splits = 4;
  System system({dimension(Shape("Ring"), 2)}, options);
  EXPECT_EQ(system.together(Kind::all_to_all, 4001, 2), Time::from_ns(5 * 164));
  EXPECT_EQ(system.together(Kind::all_to_all, 5, 2), Time::from_ps(4 * 114'100));
  EXPECT_EQ(system.together(Kind::all_gather, 3, 2), Time::from_ps(3 * 114'100));
}

// All-gather over a ring of 3, 1000 B shards (L = 200, e = 7), arrivals 0, 50, 1000 ns. Sends at 7, 57, 1007.
// Step 1: 0 hears 2 at 1207, 1 hears 0 at 207, 2 hears 1 at 257 but is busy until 1007: next sends 1214, 214, 1014.
// Step 2: 0 hears 2 at 1214, 1 hears 0 at 1414, 2 hears 1 at 414: ends 1221, 1421, 1021.
TEST(Engine, SkewedRing) {
  System system({dimension(Shape("Ring"), 3)}, options_of({ring}));
  EXPECT_EQ(system.finish(Kind::all_gather, 1000, at_ns({0, 50, 1000})), at_ns({1221, 1421, 1021}));
}

// Direct all-to-all among 3, 3000 B, m = 1000, L = 200: each waits for the latest of the others. Sends at 7, 57, 1007:
// 0 and 1 hear 2 at 1207, 2 hears 1 at 257 and is itself at 1007.
TEST(Engine, SkewedDirect) {
  System system({dimension(Shape("FullyConnected"), 3)}, options_of({direct}));
  EXPECT_EQ(system.finish(Kind::all_to_all, 3000, at_ns({0, 50, 1000})), at_ns({1214, 1214, 1014}));
}

// Rendezvous: the clear to send of 8192 B takes 100 + 819.2 ns, then the data 100 + 50: e + 919.2 + 150 + e.
TEST(Engine, Rendezvous) {
  Options options = options_of({ring});
  options.rendezvous = true;
  EXPECT_EQ(System({dimension(Shape("Ring"), 2)}, options).together(Kind::all_to_all, 1000, 2),
            Time::from_ps(1'083'200));
}

// Physical rules: {0, 1, 2} of a ring of 6 is a group whose edges take 1, 1 and 2 hops. All-gather, shards of 1000 B,
// L = 200, 200, 300 (from 2 to 0): after step 1 the members are at 7 + 307, 7 + 207, 7 + 207; after step 2: 0 hears 2:
// 214 + 300 + 7; 1 hears 0: 314 + 200 + 7; 2 hears 1: 214 + 200 + 7.
TEST(Engine, PartOfARing) {
  System system({dimension(Shape("Ring"), 6)}, options_of({ring}));
  EXPECT_EQ(system.finish(Kind::all_gather, 1000, at_ns({0, 0, 0}), npus({0, 1, 2})), at_ns({521, 521, 421}));
}

// Physical rules: {1, 3, 5, 7} of Ring(4) x FullyConnected(2) is a grid of two by two: 2 hops apart in the ring.
// All-to-all 4000 B with chunk 4000: two phases of m = 2000, L = 400 and 300. Under astra-sim rules it is one ring in
// the order listed, with 10 ns endpoint delays: 1-3 2 hops, 3-5 2 hops (ring first), 5-7 2 hops, 7-1 2 hops: m = 1000,
// L = 300.
TEST(Engine, GroupsAreGridsOrRings) {
  const std::vector<topology::Dimension> dimensions{dimension(Shape("Ring"), 4), dimension(Shape("FullyConnected"), 2)};
  System physical(dimensions, options_of({ring, direct}));
  EXPECT_EQ(physical.finish(Kind::all_to_all, 4000, at_ns({0, 0, 0, 0}), npus({1, 3, 5, 7}))[0],
            Time::from_ns(7 + 407 + 7 + 307));
  System astra(dimensions, options_of({ring, direct}), AllRules::astra_sim());
  EXPECT_EQ(astra.finish(Kind::all_to_all, 4000, at_ns({0, 0, 0, 0}), npus({1, 3, 5, 7}))[0],
            Time::from_ns(10 + 6 * 310));
}

// Involved dimensions keep the dimension's algorithm and the world's endpoint delay under astra-sim rules too.
TEST(Engine, InvolvedDimensions) {
  System system({dimension(Shape("Ring"), 4), dimension(Shape("Switch"), 2)}, options_of({ring, direct}),
                AllRules::astra_sim());
  EXPECT_EQ(system.engine.split(NpuId(6), 0b10), npus({2, 6}));
  EXPECT_EQ(system.engine.split(NpuId(6), 0b01), npus({4, 5, 6, 7}));
  EXPECT_EQ(system.engine.split(NpuId(6), 0), npus({6}));
  // Switch, 2 members, m = 2000: L = 200 + 200.
  EXPECT_EQ(system.finish(Kind::all_to_all, 4000, at_ns({0, 0}), npus({2, 6}), 0b10)[0], Time::from_ns(7 + 407));
}

// Groups of a ring of four and a switch of four have the same shape and distances, or not. Those that are alike share
// one layout.
TEST(Engine, AlikeGroupsShareALayout) {
  System system({dimension(Shape("Ring"), 4), dimension(Shape("Switch"), 4)}, options_of({ring, direct}));
  Engine& engine = system.engine;
  EXPECT_EQ(engine.layout(npus({0, 1, 2, 3}), all_dimensions), engine.layout(npus({4, 5, 6, 7}), all_dimensions));
  EXPECT_EQ(engine.layout(npus({0, 1}), all_dimensions), engine.layout(npus({2, 3}), all_dimensions));
  EXPECT_NE(engine.layout(npus({0, 1}), all_dimensions), engine.layout(npus({0, 2}), all_dimensions));
  EXPECT_NE(engine.layout(npus({0, 1}), all_dimensions), engine.layout(npus({0, 4}), all_dimensions));
}

// Broadcast is the all-reduce's plan without r, reduce with it; scatter the reduce-scatter's without; gather the
// all-gather's; a barrier an all-reduce of one byte per member (m = 1, L = 100.1, r = 0.03 ns).
TEST(Engine, OtherKinds) {
  System system({dimension(Shape("Ring"), 4)}, options_of({ring}));
  EXPECT_EQ(system.together(Kind::broadcast, 4000, 4), Time::from_ns(7 + 6 * 207));
  EXPECT_EQ(system.together(Kind::reduce, 4000, 4), Time::from_ns(7 + 6 * 207 + 90));
  EXPECT_EQ(system.together(Kind::scatter, 4000, 4), Time::from_ns(7 + 3 * 207));
  EXPECT_EQ(system.together(Kind::gather, 4000, 4), Time::from_ns(7 + 3 * 507));
  EXPECT_EQ(system.together(Kind::barrier, 0, 4), Time::from_ps(7'000 + 6 * 107'100 + 3 * 30));
}

// A communicator has one member, or its links take no time under ASTRA-sim's rules. One member completes when it
// arrives; several take one tick.
TEST(Engine, OneMemberAndFreeLinks) {
  Options options = options_of({ring});
  options.endpoint_delay = Time::zero();
  System alone({dimension(Shape("Ring"), 1)}, options);
  EXPECT_EQ(alone.finish(Kind::all_reduce, 1000, at_ns({5})), at_ns({5}));
  EXPECT_EQ(alone.engine.minimum_duration(*alone.engine.layout({}, all_dimensions)), Time::zero());
  System free({{Shape("Ring"), 2, Bandwidth::from_bytes_per_ns(1e6), 0}}, options, AllRules::astra_sim());
  EXPECT_EQ(free.finish(Kind::all_gather, 1, at_ns({5, 9})), at_ns({10, 10}));
}

// Ring of 4, 4000 B in 2 chunks: 2 * 3 messages of 500 B. Halving-doubling: 2 * (1000 + 500) twice. Trees: 3 edges,
// both ways, whole chunks, over 4 members: 2 * 2 * 3 * 2000 / 4.
TEST(Engine, Traffic) {
  Options options = options_of({ring});
  options.chunks.splits = 2;
  const auto sent = [&](Algorithm algorithm, Kind kind) {
    options.all_reduce = options.all_gather = {algorithm};
    System system({dimension(Shape("Ring"), 4)}, options);
    return system.engine.traffic(*system.engine.layout({}, all_dimensions), kind, Bytes(4000))[0].count();
  };
  EXPECT_EQ(sent(ring, Kind::all_reduce), 6000U);
  EXPECT_EQ(sent(direct, Kind::all_reduce), 6000U);
  EXPECT_EQ(sent(halving_doubling, Kind::all_reduce), 6000U);
  EXPECT_EQ(sent(double_binary_tree, Kind::all_reduce), 6000U);
  EXPECT_EQ(sent(ring, Kind::all_gather), 12000U);
  EXPECT_EQ(sent(halving_doubling, Kind::all_gather), 12000U);
}

// One group over Ring(2) x Switch(2): of the edges 0-1, 1-2, 2-3, 3-0 all four cross dimension 0, and 1-2 and 3-0 cross
// dimension 1 too. Physical rules charge both. All-gather of 1000 B: 3 steps.
TEST(Engine, TrafficOfOneLine) {
  System system({dimension(Shape("Ring"), 2), dimension(Shape("Switch"), 2)}, options_of({{"ring", 0, true}}));
  const CollectiveTraffic& traffic =
      system.engine.traffic(*system.engine.layout({}, all_dimensions), Kind::all_gather, Bytes(1000));
  EXPECT_EQ(traffic[0], Bytes(3000));
  EXPECT_EQ(traffic[1], Bytes(1500));
  System pairs({dimension(Shape("Ring"), 2), dimension(Shape("Switch"), 2)}, options_of({{"direct", 0, true}}),
               AllRules::astra_sim());
  // Each sends to three others: two differ in dimension 0, one in dimension 1 alone.
  const CollectiveTraffic& sent =
      pairs.engine.traffic(*pairs.engine.layout({}, all_dimensions), Kind::all_gather, Bytes(1000));
  EXPECT_EQ(sent[0], Bytes(2000));
  EXPECT_EQ(sent[1], Bytes(1000));
}

// 400 plans of two trees of 4096 are more than the engine keeps: the first is forgotten, and comes out the same again.
TEST(Engine, ForgetsWithoutHarm) {
  System system({dimension(Shape("Switch"), 4096)}, options_of({double_binary_tree}));
  const std::vector<Time> arrivals(4096);
  const std::vector<Time> before = system.finish(Kind::all_reduce, 1'000'000, arrivals);
  for (std::uint64_t k = 1; k <= 400; ++k) system.finish(Kind::all_reduce, 1'000'000 + k, arrivals);
  EXPECT_EQ(system.finish(Kind::all_reduce, 1'000'000, arrivals), before);
}

// An algorithm cannot carry out a kind or a size of a group, or a kind has no algorithm. The error names the dimension,
// the algorithm and the kind, or the key.
TEST(Engine, RefusesWhatAnAlgorithmDoesNotCarryOut) {
  System six({dimension(Shape("Switch"), 6)}, options_of({halving_doubling}));
  EXPECT_EQ(six.fault(Kind::all_reduce),
            "dimension 0: halvingDoubling does not carry out all-reduce of 6 NPUs: the size is not a power of two");
  System eight({dimension(Shape("Ring"), 2), dimension(Shape("Switch"), 8)}, options_of({ring, halving_doubling}));
  EXPECT_NE(eight.refusal(Kind::all_to_all).find("dimension 1: halvingDoubling"), std::string::npos);
  EXPECT_EQ(eight.refusal(Kind::all_reduce), "accepted");
  EXPECT_NE(eight.refusal(Kind::all_reduce, npus({0, 2, 4})).find("of 3 NPUs"), std::string::npos);
  System trees({dimension(Shape("Ring"), 2), dimension(Shape("Switch"), 8)}, options_of({double_binary_tree, ring}));
  EXPECT_NE(trees.refusal(Kind::all_reduce).find("reduce-scatter (part of all-reduce)"), std::string::npos);
  Options none = options_of({ring});
  none.all_to_all.clear();
  EXPECT_NE(System({dimension(Shape("Ring"), 2)}, none).refusal(Kind::all_to_all).find("all-to-all-implementation"),
            std::string::npos);
}

// One option at a time is zero or a list of the wrong length. The error names its key.
TEST(Options, ValidateNamesTheKey) {
  const topology::Topology topology({dimension(Shape("Ring"), 2), dimension(Shape("Ring"), 2)});
  const auto refusal = [&](auto change) {
    Options options = options_of({ring, ring});
    change(options);
    try {
      options.validate(topology);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal([](Options&) {}), "accepted");
  EXPECT_NE(refusal([](Options& o) { o.chunks.splits = 0; }).find("preferred-dataset-splits"), std::string::npos);
  EXPECT_NE(refusal([](Options& o) { o.chunks.active_chunks = 0; }).find("active-chunks-per-dimension"),
            std::string::npos);
  EXPECT_NE(refusal([](Options& o) { o.chunks.queues = 0; }).find("queues-per-dimension"), std::string::npos);
  EXPECT_NE(refusal([](Options& o) { o.all_gather = {ring}; }).find("all-gather-implementation"), std::string::npos);
  EXPECT_NE(refusal([](Options& o) { o.endpoint_delay = Time::from_ns(-1); }).find("endpoint-delay"),
            std::string::npos);
  EXPECT_EQ(refusal([](Options& o) { o.all_gather = {{"ring", 0, true}}; }), "accepted");
}

// A group has a member twice or one that is not there, or a collective takes longer than Time can hold. Each throws an
// error.
TEST(Engine, RefusesMembersTwiceAndTimesThatDoNotFit) {
  System system({dimension(Shape("Ring"), 4)}, options_of({ring}));
  EXPECT_THROW(system.engine.layout(npus({1, 1}), all_dimensions), Error);
  EXPECT_THROW(system.engine.layout(npus({1, 9}), all_dimensions), Error);
  EXPECT_THROW(system.together(Kind::all_gather, std::uint64_t{1} << 62, 4), Error);
}

// A ring of 2 in one chunk: reduce-scatter takes 7 + 1 * (100 + m/10 + 7 + 3m/100) ns for a message of m bytes.
TEST(Range, OfTimeAndBytes) {
  Options options = options_of({ring});
  System system({dimension(Shape("Ring"), 2)}, options);
  const auto layout = system.engine.layout({}, all_dimensions);
  constexpr std::uint64_t much = 100'000'000'000'000'000;  // m = 5e16: 6.5e15 ns
  EXPECT_FALSE(system.engine.fits(*layout, Kind::reduce_scatter, Bytes(much * 2)));
  EXPECT_FALSE(system.engine.fits(*layout, Kind::all_gather, Bytes(much)));
  EXPECT_FALSE(system.engine.fits(*layout, Kind::all_reduce, Bytes::most()));
  EXPECT_TRUE(system.engine.fits(*layout, Kind::reduce_scatter, Bytes(much / 2)));

  const Time duration = system.together(Kind::reduce_scatter, much / 2, 2);
  EXPECT_GT(duration, Time::from_ns(3'000'000'000'000'000));
  const Time latest = Time::from_ps(Time::max().ps() - 1 - duration.ps());
  const auto at_the_end = system.finish(Kind::reduce_scatter, much / 2, {latest, latest});
  EXPECT_EQ(at_the_end[0], Time::from_ps(Time::max().ps() - 1));
  const Time later = latest + Time::from_ps(1);
  EXPECT_EQ(system.finish(Kind::reduce_scatter, much / 2, {later, later})[0], Time::max());
  EXPECT_EQ(system.finish(Kind::reduce_scatter, much / 2, {Time::zero(), later})[1], Time::max());
}

// Four members, e = 7, messages of 1000 B: 200 ns, reduced in 30. NPU 1 has half the bandwidth: the edges 0-1 and 1-2
// take 300. All-reduce: 6 steps, 7 e, 3 reductions: 139; and the longest 6 edges in a row that end in the member: a
// round of 1000 and two more.
TEST(Engine, RingWithASlowPort) {
  System system(line_with_fault(topology::Shape("Ring"), 4, {0, npus({1}), {0.5, 1}, false}), options_of({ring}));
  EXPECT_EQ(system.finish(Kind::all_reduce, 4000, std::vector<Time>(4)), at_ns({1539, 1639, 1739, 1639}));
}

// All send to all: who sends to NPU 2, or receives from it, waits 3 * 100 + 100.
TEST(Engine, DirectWithASlowPort) {
  System system(line_with_fault(topology::Shape("FullyConnected"), 4, {0, npus({2}), {1, 3}, false}),
                options_of({direct}));
  EXPECT_EQ(system.finish(Kind::all_to_all, 4000, std::vector<Time>(4)), at_ns({414, 414, 414, 414}));
}

// NPUs 0 and 1 reach each other by NPU 2, whose links carry two messages each way: 2 * 100 + 200. Messages between NPU
// 2 and these two take 100 + 200, those of NPU 3 100 + 100.
TEST(Engine, DirectAroundAFailedLink) {
  System system(line_with_fault(topology::Shape("FullyConnected"), 4, {0, npus({0, 1}), {}, true}),
                options_of({direct}));
  EXPECT_EQ(system.finish(Kind::reduce_scatter, 4000, std::vector<Time>(4)), at_ns({444, 444, 344, 244}));
}

// Reduce-scatter: 2000 B between 0 and 1 (400 ns) and between 2 and 3 (600, NPU 3 has half the bandwidth), reduced in
// 60: 474, 474, 674, 674. Then 1000 B between 0 and 2 (300) and between 1 and 3 (400), reduced in 30.
TEST(Engine, HalvingDoublingWithASlowPort) {
  System system(line_with_fault(topology::Shape("Switch"), 4, {0, npus({3}), {0.5, 1}, false}),
                options_of({halving_doubling}));
  EXPECT_EQ(system.finish(Kind::reduce_scatter, 4000, std::vector<Time>(4)), at_ns({1011, 1111, 811, 911}));
}

// Communicators whose links are alike share a layout; others do not.
TEST(Engine, LayoutsTellSlowPortsApart) {
  const std::vector<topology::Dimension> dimensions = {
      {topology::Shape("Switch"), 2, Bandwidth::from_bytes_per_ns(10), 100},
      {topology::Shape("Switch"), 4, Bandwidth::from_bytes_per_ns(10), 100}};
  topology::Links links(dimensions);
  links.add({0, npus({2, 4}), {0.5, 1}, false});
  System system(dimensions, options_of({ring, ring}), {}, links);
  const auto layout = [&](std::initializer_list<std::uint32_t> members) {
    return system.engine.layout(npus(members), all_dimensions);
  };
  EXPECT_EQ(layout({0, 1}), layout({6, 7}));
  EXPECT_EQ(layout({2, 3}), layout({4, 5}));
  EXPECT_NE(layout({0, 1}), layout({2, 3}));
  EXPECT_EQ(layout({0, 2}), layout({1, 3}));  // in dimension 1 all are as they should be
}

// Where a group stands in a mesh does not matter, how far its members are apart does.
TEST(Engine, LayoutsOfAMesh) {
  System system({dimension(Shape("Mesh"), 5)}, options_of({ring}));
  const auto layout = [&](std::initializer_list<std::uint32_t> members) {
    return system.engine.layout(npus(members), all_dimensions);
  };
  EXPECT_EQ(layout({0, 1, 3}), layout({1, 2, 4}));
  EXPECT_NE(layout({0, 1, 3}), layout({1, 3, 4}));
}

// Members with equal signatures and equal classes complete together, whatever the arrivals; and where groups are
// symmetric there are few classes.
TEST(Engine, ClassesOfMembersThatAreAlike) {
  const std::vector<std::vector<topology::Dimension>> shapes = {
      {dimension(Shape("Ring"), 4), dimension(Shape("Switch"), 4)},
      {dimension(Shape("FullyConnected"), 2), dimension(Shape("Ring"), 6), dimension(Shape("Switch"), 2)},
      {dimension(Shape("Ring"), 8)},
      {dimension(Shape("Mesh"), 4), dimension(Shape("Mesh"), 2)},
      {dimension(Shape("Switch"), 8), dimension(Shape("Switch"), 2)}};
  const std::vector<Algorithm> algorithms = {
      ring, direct, {"direct", 2, false}, halving_doubling, double_binary_tree, {"ring", 0, true}};
  const std::vector<Kind> kinds = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all};
  std::mt19937 source(7);
  const auto random = [&] { return static_cast<std::uint32_t>(source()); };
  std::size_t fewer = 0, checked = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto& dimensions = shapes[random() % shapes.size()];
    std::vector<Algorithm> list;
    for (std::size_t d = 0; d < dimensions.size(); ++d) list.push_back(algorithms[random() % algorithms.size()]);
    Options options = options_of(list);
    options.chunks.splits = 1 + random() % 3;
    options.rendezvous = random() % 2 == 0;
    topology::Links links(dimensions);
    if (random() % 3 == 0)
      links.add({random() % static_cast<std::uint32_t>(dimensions.size()), npus({1, 5}), {0.5, 2}, false});
    System system(dimensions, options, random() % 2 == 0 ? AllRules::physical() : AllRules::astra_sim(), links);
    const Kind kind = kinds[random() % kinds.size()];
    const auto layout = system.engine.layout({}, all_dimensions);
    if (system.refusal(kind) != "accepted") continue;
    std::uint32_t n = 1;
    for (const auto& d : dimensions) n *= d.size;
    const std::uint32_t period = std::vector<std::uint32_t>{1, 2, 4, n}[random() % 4], stride = 1U << random() % 3;
    std::vector<std::uint32_t> marks(n);
    for (std::uint32_t i = 0; i < n; ++i) marks[i] = i / stride % period;
    const auto classes = system.engine.equivalence_classes(*layout, std::vector{kind}, marks);
    std::vector<Time> of_mark(n), arrivals(n);
    for (auto& time : of_mark) time = Time::from_ns(random() % 3000);
    for (std::uint32_t i = 0; i < n; ++i) arrivals[i] = of_mark[marks[i]];
    const auto completions = system.finish(kind, 1 + random() % 100000, arrivals);
    std::map<std::pair<std::uint32_t, std::uint32_t>, Time> known;
    for (std::uint32_t i = 0; i < n; ++i)
      ASSERT_EQ(known.try_emplace({marks[i], classes[i]}, completions[i]).first->second, completions[i]) << round;
    ++checked;
    fewer += known.size() < n;
  }
  EXPECT_GT(checked, 500U);
  EXPECT_GT(fewer, checked / 4);
}

}  // namespace
}  // namespace orrery::collective
