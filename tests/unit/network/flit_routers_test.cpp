#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "flit/routers.hpp"
#include "orrery/network/flit_traffic.hpp"

namespace orrery::network::flit {
namespace {

constexpr Layout row(std::uint32_t npus, FlitShape shape = FlitShape::mesh) { return {shape, npus, 1}; }

FlitRules rules_of(std::uint32_t channels, std::uint32_t buffer, std::uint32_t packet) {
  FlitRules rules;
  rules.virtual_channels = channels;
  rules.buffer = buffer;
  rules.packet = packet;
  return rules;
}

/// Simulates until nothing is under way. Returns the cycles in which packets arrived, by their notes.
std::map<std::uint64_t, std::uint64_t> arrivals(Routers& routers) {
  std::map<std::uint64_t, std::uint64_t> cycles;
  while (!routers.is_idle() && routers.cycle() < 1'000'000) {
    routers.step();
    for (const Routers::Delivered& packet : routers.delivered()) cycles[packet.note] = routers.cycle() - 1;
  }
  return cycles;
}

// 2 cycles from the NPU, route + 2 in each router, 1 + link on each link, 2 to the NPU, and the flits behind the head.
TEST(FlitRouters, APacketAloneTakesTheZeroLoadLatency) {
  for (const std::uint32_t route : {0U, 1U, 3U}) {
    for (const std::uint32_t link : {0U, 1U, 2U, 5U}) {
      FlitRules rules = rules_of(4, 32, 5);
      rules.route = route;
      rules.link = link;
      for (std::uint32_t to = 0; to < 16; ++to) {
        Routers routers({FlitShape::mesh, 4, 4}, rules);
        routers.inject(5, to, 5, 0);
        EXPECT_EQ(arrivals(routers)[0], rules.zero_load(routers.layout().hops(5, to), 5)) << route << link << to;
      }
    }
  }
  EXPECT_EQ(FlitRules().zero_load(2, 5), 2 + 3 * 3 + 2 * 2 + 2 + 4);
}

// On a torus of 5 columns and 3 rows, NPU 4 is one column before NPU 0, and NPU 12 two columns and one row away. A
// packet to it takes the zero-load latency of three links.
TEST(FlitRouters, ATorusTakesTheShorterWay) {
  const Layout torus{FlitShape::torus, 5, 3};
  EXPECT_EQ(torus.hops(0, 4), 1U);
  EXPECT_EQ(torus.hops(0, 12), 3U);  // 2 columns and 1 row
  Routers routers(torus, rules_of(2, 8, 1));
  routers.inject(0, 12, 1, 7);
  EXPECT_EQ(arrivals(routers)[7], FlitRules().zero_load(3, 1));
}

/// NPUs 0 and 1 send two flits each to NPU 2 through one router. Returns the cycles in which the packets arrived, by
/// their sources.
std::map<std::uint64_t, std::uint64_t> arrivals_at_one_output(std::uint32_t virtual_channels) {
  Routers routers(row(3, FlitShape::crossbar), rules_of(virtual_channels, 8, 2));
  routers.inject(0, 2, 2, 0);
  routers.inject(1, 2, 2, 1);
  return arrivals(routers);
}

// Heads are at the router in cycle 2 and ask for a virtual channel in 3. With one channel, NPU 0 has it until its tail
// has left in 5. NPU 1 gets it in 6, and its flits leave in 7 and 8.
TEST(FlitRouters, APacketWaitsForAVirtualChannel) {
  auto cycles = arrivals_at_one_output(1);
  EXPECT_EQ(cycles[0], 8U);
  EXPECT_EQ(cycles[1], 11U);
}

// With two channels, both ask for the first one in 3, and NPU 1 gets the second one in 4. The output takes inputs in
// turn: heads in 4 and 5, tails in 6 and 7.
TEST(FlitRouters, PacketsOnTwoVirtualChannelsTakeTurns) {
  auto cycles = arrivals_at_one_output(2);
  EXPECT_EQ(cycles[0], 9U);
  EXPECT_EQ(cycles[1], 10U);
}

// With a buffer of one flit the three flits pass the link in cycles 4, 12 and 18. The second one is at the first router
// in 8 and waits for four cycles, the third one in 16 and waits for two. Credits are back in 12, 18 and 24.
TEST(FlitRouters, FlitsWaitForCredits) {
  Routers routers(row(2), rules_of(1, 1, 3));
  routers.inject(0, 1, 3, 0);
  EXPECT_EQ(arrivals(routers)[0], 24U);
  const LinkCounts& link = routers.link(0);
  EXPECT_EQ(link.flits, 3U);
  EXPECT_EQ(link.starved, 6U);
  EXPECT_EQ(routers.occupancy(0), 8U + 6 + 6);
  EXPECT_EQ(link.peak, 1U);
  EXPECT_EQ(routers.flit_hops(), 6U);
}

// With a buffer of two flits they pass the link in 4, 5, 12 and 13.
TEST(FlitRouters, ALargerBufferHoldsUpFewerFlits) {
  Routers routers(row(2), rules_of(1, 2, 4));
  routers.inject(0, 1, 4, 0);
  EXPECT_EQ(arrivals(routers)[0], 19U);
}

// A packet behind another one gets the virtual channel as soon as the tail has left with wormhole, and with cut-through
// only when there is room for all of it.
TEST(FlitRouters, CutThroughWaitsForRoomForThePacket) {
  std::vector<std::uint64_t> last;
  for (const std::uint32_t buffer : {5U, 16U}) {
    for (const FlitFlowControl control : {FlitFlowControl::wormhole, FlitFlowControl::virtual_cut_through}) {
      FlitRules rules = rules_of(1, buffer, 4);
      rules.flow_control = control;
      Routers routers(row(3), rules);
      routers.inject(0, 2, 4, 0);
      routers.inject(0, 2, 4, 1);
      last.push_back(arrivals(routers)[1]);
    }
  }
  EXPECT_LT(last[0], last[1]);
  EXPECT_EQ(last[2], last[3]);
}

// Every NPU of a ring sends two NPUs further. On one virtual channel the packets would wait for each other in a circle.
TEST(FlitRouters, HalvesOfVirtualChannelsOpenTheRingsOfATorus) {
  for (const std::uint32_t step : {2U, 3U}) {  // up, and down
    Routers routers(row(5, FlitShape::torus), rules_of(2, 1, 8));
    for (std::uint32_t packet = 0; packet < 50; ++packet)
      for (std::uint32_t npu = 0; npu < 5; ++npu) routers.inject(npu, (npu + step) % 5, 8, packet * 5 + npu);
    EXPECT_EQ(arrivals(routers).size(), 250U);
  }
}

// 20 packets go across a mesh of 2 x 2, one after the other. Both ways are equally free, so adaptive routing draws:
// each way gets several packets. Dimension order takes x before y always.
TEST(FlitRouters, AdaptiveRoutingTakesBothWays) {
  for (const FlitRouting routing : {FlitRouting::dor, FlitRouting::adaptive_xy_yx}) {
    FlitRules rules = rules_of(2, 8, 1);
    rules.routing = routing;
    Routers routers({FlitShape::mesh, 2, 2}, rules);
    for (std::uint32_t packet = 0; packet < 20; ++packet) {
      routers.inject(0, 3, 1, packet);
      EXPECT_EQ(arrivals(routers).size(), 1U);
    }
    const std::uint64_t x_first = routers.link(0).flits, y_first = routers.link(2).flits;
    EXPECT_EQ(x_first + y_first, 20U);
    if (routing == FlitRouting::dor)
      EXPECT_EQ(y_first, 0U);
    else
      EXPECT_TRUE(x_first > 4 && y_first > 4) << x_first;
  }
}

// 90 packets are under way on a mesh of 3 x 3 after 40 cycles. Another network reads that state, and the rest arrives
// in the cycles in which it arrives in the first one.
TEST(FlitRouters, AnArchiveHoldsTheWholeState) {
  const Layout mesh{FlitShape::mesh, 3, 3};
  Routers one(mesh, rules_of(2, 2, 3)), other(mesh, rules_of(2, 2, 3));
  for (std::uint32_t packet = 0; packet < 90; ++packet) one.inject(packet % 9, packet * 7 % 9, 3, packet);
  for (int cycle = 0; cycle < 40; ++cycle) one.step();
  Archive writing;
  one.serialize(writing);
  const auto bytes = writing.written();
  Archive reading(bytes);
  other.serialize(reading);
  const auto expected = arrivals(one);
  EXPECT_GT(expected.size(), 40U);
  EXPECT_EQ(arrivals(other), expected);
  EXPECT_EQ(other.flit_hops(), one.flit_hops());
}

// 1 % of the load has hardly any waiting: 3.5 routers in the mean of a 4 x 4 mesh, each 3 cycles and 2 on its link.
TEST(FlitTraffic, LatencyGrowsFromZeroLoadToSaturation) {
  FlitTraffic traffic{.width = 4, .height = 4, .rules = rules_of(4, 8, 5), .pattern = &FlitPattern::all()[0]};
  traffic.rate = 0.01;
  const FlitTrafficFigures idle = simulate_traffic(traffic);
  EXPECT_NEAR(idle.latency, 2 + 3.5 * 3 + 2.5 * 2 + 2 + 4, 0.5);
  EXPECT_NEAR(idle.routers, 3.5, 0.1);
  EXPECT_FALSE(idle.is_saturated);
  traffic.rate = 0.4;
  const FlitTrafficFigures busy = simulate_traffic(traffic);
  EXPECT_GT(busy.latency, idle.latency + 2);
  EXPECT_NEAR(busy.accepted, 0.4, 0.01);
  EXPECT_EQ(simulate_traffic(traffic).latency, busy.latency) << "of one seed";
  traffic.rate = 1;
  const FlitTrafficFigures full = simulate_traffic(traffic);
  EXPECT_TRUE(full.is_saturated);
  EXPECT_LT(full.accepted, 0.8);
}

}  // namespace
}  // namespace orrery::network::flit
