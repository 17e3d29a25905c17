// How long messages hold the links of a fabric and when they are behind them.
#include "orrery/network/link_delays.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "dimension_of.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::network {
namespace {

using topology::Dimension;
using topology::dimension_of;
using topology::Fabric;
using topology::LinkFault;
using topology::LinkId;
using topology::Shape;
using topology::Topology;

Topology with_faults(const std::vector<Dimension>& dimensions, const std::vector<LinkFault>& faults = {}) {
  topology::Links links(dimensions);
  for (const LinkFault& fault : faults) links.add(fault);
  return Topology(dimensions, links);
}

/// Returns the links of a route in order.
std::vector<Fabric::Link> route(const Fabric& fabric, std::uint32_t from, std::uint32_t to) {
  std::vector<Fabric::Link> links;
  for (std::optional<LinkId> at = fabric.first(NpuId(from), NpuId(to)); at; at = fabric.next(links.back(), NpuId(to)))
    links.push_back(fabric.find(*at));
  return links;
}

Dimension fat_tree(std::uint32_t ports, std::uint32_t size) {
  Dimension tree = dimension_of(Shape("FatTree"), size);
  tree.parameters = {{"ports", ports}};
  return tree;
}

// In a Ring of 4 a link takes 100 ns for 1000 B and a hop 100 ns. NPU 1 has half the bandwidth and three times the
// latency, and so have the links that lead to it and from it.
TEST(LinkDelays, ALinkIsAsSlowAsTheSlowerOfItsEnds) {
  const Topology topology = with_faults({dimension_of(Shape("Ring"), 4)}, {{0, {NpuId(1)}, {0.5, 3}, false}});
  const Fabric fabric(topology);
  const LinkDelays delays(fabric, Rounding::up_to_ps);
  const auto link = [&](std::uint32_t from, std::uint32_t to) {
    return fabric.find(fabric.first(NpuId(from), NpuId(to)));
  };
  EXPECT_EQ(delays.holds(link(2, 3), Bytes(1000)), Time::from_ns(100));
  EXPECT_EQ(delays.passes(link(2, 3), Bytes(1000)), Time::from_ns(200));
  EXPECT_EQ(delays.holds(link(0, 1), Bytes(1000)), Time::from_ns(200));
  EXPECT_EQ(delays.passes(link(1, 0), Bytes(1000)), Time::from_ns(500));
  EXPECT_EQ(delays.least_pass(), Time::from_ns(100));
}

// A Switch of 4 with two links of 10 B/ns side by side is oversubscribed by 2, so that its core has the bandwidth of
// four links. The core and the way down share one latency, also where NPU 1 has a shorter one.
TEST(LinkDelays, AnOversubscribedSwitchHasACore) {
  Dimension star = dimension_of(Shape("Switch"), 4);
  star.links = 2;
  star.oversubscription = 2;
  const LinkFault fast{0, {NpuId(1)}, {1, 0.5}, false};
  for (const bool has_fast : {false, true}) {
    const Topology topology = with_faults({star}, has_fast ? std::vector{fast} : std::vector<LinkFault>{});
    const Fabric fabric(topology);
    const LinkDelays delays(fabric, Rounding::up_to_ps);
    EXPECT_EQ(fabric.switches()[0].name, "switch input 0");
    EXPECT_EQ(fabric.switches()[1].name, "switch output 0");
    const std::vector<Fabric::Link> links = route(fabric, 3, 1);
    ASSERT_EQ(links.size(), 3U);
    EXPECT_EQ(links[1].owner, NpuId(0));
    EXPECT_TRUE(fabric.takes_whole(links[1]) && !fabric.takes_whole(links[2]));
    EXPECT_EQ(delays.holds(links[0], Bytes(1000)), Time::from_ns(50));
    EXPECT_EQ(delays.holds(links[1], Bytes(1000)), Time::from_ns(25));
    EXPECT_EQ(delays.passes(links[1], Bytes(1000)), Time::from_ns(has_fast ? 25 + 25 : 25 + 50));
    EXPECT_EQ(delays.passes(links[2], Bytes(1000)), Time::from_ns(has_fast ? 50 + 25 : 50 + 50));
    EXPECT_EQ(delays.least_pass(), Time::from_ns(has_fast ? 25 : 50));
  }
}

// In a FatTree NPU 5 has half the bandwidth. The links between it and its edge switch are slow; those between switches
// are not.
TEST(LinkDelays, PortsOfAFatTreeAreThoseOfItsNpus) {
  const Topology topology = with_faults({fat_tree(4, 16)}, {{0, {NpuId(5)}, {0.5, 1}, false}});
  const Fabric fabric(topology);
  const LinkDelays delays(fabric, Rounding::up_to_ps);
  const auto holds = [&](std::uint32_t from, std::uint32_t to) {
    std::vector<std::int64_t> ns;
    for (const Fabric::Link& link : route(fabric, from, to)) ns.push_back(delays.holds(link, Bytes(1000)).ps() / 1000);
    return ns;
  };
  EXPECT_EQ(holds(5, 6), (std::vector<std::int64_t>{200, 100, 100, 100}));
  EXPECT_EQ(holds(4, 5), (std::vector<std::int64_t>{100, 200}));
  EXPECT_EQ(holds(4, 6), (std::vector<std::int64_t>{100, 100, 100, 100}));
}

// A hop takes 100 ns in a FatTree, so no message passes a link in less.
TEST(LinkDelays, TheLeastPassIsAHop) {
  const Topology topology({fat_tree(4, 16)});
  const Fabric fabric(topology);
  EXPECT_EQ(LinkDelays(fabric, Rounding::up_to_ps).least_pass(), Time::from_ns(100));
}

}  // namespace
}  // namespace orrery::network
