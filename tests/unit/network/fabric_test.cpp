// Links and ways over them, by hand and against the topology's count of hops.
#include "orrery/network/fabric.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "orrery/base/error.hpp"

namespace orrery::network {
namespace {

using topology::Dimension;
using topology::LinkFault;
using topology::Shape;
using topology::Topology;

Dimension dimension(Shape shape, std::uint32_t size) { return {shape, size, Bandwidth::from_bytes_per_ns(10), 100}; }

Topology with(const std::vector<Dimension>& dimensions, const std::vector<LinkFault>& faults = {}) {
  topology::Links links(dimensions);
  for (const LinkFault& fault : faults) links.add(fault);
  return {dimensions, Rules::physical(), links};
}

/// The devices on the way, -1 - s for switch s; both ends included.
std::vector<int> way(const Fabric& fabric, std::uint32_t from, std::uint32_t to) {
  std::vector<int> devices{static_cast<int>(from)};
  std::optional<LinkId> at = fabric.first(NpuId(from), NpuId(to));
  while (at) {
    const Fabric::Link link = fabric.find(*at);
    const Fabric::Ends ends = fabric.ends(link);
    EXPECT_EQ(static_cast<int>(ends.from), devices.back());
    devices.push_back(static_cast<int>(ends.to));
    if (devices.size() > 100) return {};
    at = fabric.next(link, NpuId(to));
  }
  return devices;
}

using Way = std::vector<int>;

TEST(Fabric, ARingLeadsTheShorterWayRoundUpwardsOnATie) {
  const Topology ring = with({dimension(Shape::ring, 6)});
  const Fabric fabric(ring);
  EXPECT_EQ(fabric.num_links(), 12U);
  EXPECT_EQ(way(fabric, 4, 0), (Way{4, 5, 0}));
  EXPECT_EQ(way(fabric, 1, 5), (Way{1, 0, 5}));
  EXPECT_EQ(way(fabric, 1, 4), (Way{1, 2, 3, 4}));
  EXPECT_EQ(way(fabric, 4, 1), (Way{4, 5, 0, 1}));
}

TEST(Fabric, AMeshLeadsAlongTheRow) {
  const Topology row = with({dimension(Shape::mesh, 5)});
  const Fabric fabric(row);
  EXPECT_EQ(way(fabric, 4, 0), (Way{4, 3, 2, 1, 0}));
  EXPECT_EQ(way(fabric, 1, 4), (Way{1, 2, 3, 4}));
  const Topology two = with({dimension(Shape::mesh, 2)});
  EXPECT_EQ(way(Fabric(two), 1, 0), (Way{1, 0}));
}

TEST(Fabric, OtherShapes) {
  const Topology two = with({dimension(Shape::ring, 2)});
  EXPECT_EQ(Fabric(two).num_links(), 2U);
  EXPECT_EQ(way(Fabric(two), 1, 0), (Way{1, 0}));
  const Topology full = with({dimension(Shape::fully_connected, 4)});
  EXPECT_EQ(Fabric(full).num_links(), 12U);
  EXPECT_EQ(way(Fabric(full), 3, 1), (Way{3, 1}));
  const Topology star = with({dimension(Shape::switched, 4)});
  EXPECT_EQ(Fabric(star).num_links(), 8U);
  EXPECT_EQ(way(Fabric(star), 3, 1), (Way{3, -1, 1}));
}

// 3 x 1 x 2 x 2: the lowest dimension first; one of size 1 has no links.
TEST(Fabric, GoesThroughTheDimensionsInOrder) {
  const Topology torus = with({dimension(Shape::ring, 3), dimension(Shape::ring, 1), dimension(Shape::switched, 2),
                               dimension(Shape::fully_connected, 2)});
  const Fabric fabric(torus);
  EXPECT_EQ(way(fabric, 0, 11), (Way{0, 2, -3, 5, 11}));
  EXPECT_EQ(way(fabric, 10, 1), (Way{10, -5, 7, 1}));
  EXPECT_EQ(fabric.links_per_npu(), 2U + 0U + 2U + 1U);
}

TEST(Fabric, EveryWayHasTheHopsOfTheTopology) {
  const std::vector<Dimension> dimensions = {dimension(Shape::ring, 5), dimension(Shape::fully_connected, 4),
                                             dimension(Shape::switched, 3), dimension(Shape::mesh, 4)};
  const LinkFault cut{0, {NpuId(11), NpuId(12)}, {}, true};  // in one line
  const LinkFault gone{1, {NpuId(0), NpuId(15)}, {}, true};  // likewise
  const LinkFault more{1, {NpuId(5), NpuId(15)}, {}, true};
  for (const Topology& topology : {with(dimensions), with(dimensions, {cut, gone, more})}) {
    const Fabric fabric(topology);
    for (std::uint32_t from = 0; from < 240; ++from)
      for (std::uint32_t to = 0; to < 240; ++to) {
        if (from == to) continue;
        std::size_t hops = 0;
        topology.for_each_leg(NpuId(from), NpuId(to),
                              [&](std::uint32_t, std::uint32_t count, const topology::Port&) { hops += count; });
        const Way devices = way(fabric, from, to);
        EXPECT_EQ(devices.size(), hops + 1) << from << " to " << to;
        EXPECT_EQ(devices.back(), static_cast<int>(to));
      }
  }
}

TEST(Fabric, NumbersEveryLinkOnce) {
  const Topology topology =
      with({dimension(Shape::fully_connected, 3), dimension(Shape::ring, 2), dimension(Shape::switched, 2)});
  const Fabric fabric(topology);
  std::set<std::uint32_t> seen;
  for (std::uint32_t npu = 0; npu < 12; ++npu)
    for (std::uint32_t k = 0; k < fabric.links_per_npu(); ++k) {
      const Fabric::Link link = fabric.find(fabric.link_of(NpuId(npu), k));
      EXPECT_EQ(link.owner, NpuId(npu));
      EXPECT_EQ(fabric.number_at_owner(link), k);
      seen.insert(link.id.value());
    }
  EXPECT_EQ(seen.size(), fabric.num_links());
  EXPECT_EQ(*seen.rbegin() + 1, fabric.num_links());
}

// 1000 B take 100 ns, a hop 100 ns. NPU 1: half the bandwidth, three times the latency.
TEST(Fabric, ALinkIsAsSlowAsTheSlowerOfItsEnds) {
  const Topology topology = with({dimension(Shape::ring, 4)}, {{0, {NpuId(1)}, {0.5, 3}, false}});
  const Fabric fabric(topology);
  const auto link = [&](std::uint32_t from, std::uint32_t to) {
    return fabric.find(fabric.first(NpuId(from), NpuId(to)));
  };
  EXPECT_EQ(fabric.holds(link(2, 3), Bytes(1000)), Time::from_ns(100));
  EXPECT_EQ(fabric.passes(link(2, 3), Bytes(1000)), Time::from_ns(200));
  EXPECT_EQ(fabric.holds(link(0, 1), Bytes(1000)), Time::from_ns(200));
  EXPECT_EQ(fabric.passes(link(1, 0), Bytes(1000)), Time::from_ns(500));
  EXPECT_EQ(fabric.least_pass(), Time::from_ns(100));
}

// Two links of 10 B/ns side by side. The switch of 4, oversubscribed by 2, passes four links' bandwidth; the latency of
// its way down is shared, also where NPU 1 has a shorter one.
TEST(Fabric, AnOversubscribedSwitchHasACore) {
  Dimension star = dimension(Shape::switched, 4);
  star.links = 2;
  star.oversubscription = 2;
  const LinkFault fast{0, {NpuId(1)}, {1, 0.5}, false};
  for (const bool has_fast : {false, true}) {
    const Topology topology = with({star}, has_fast ? std::vector{fast} : std::vector<LinkFault>{});
    const Fabric fabric(topology);
    EXPECT_EQ(way(fabric, 3, 1), (Way{3, -1, -2, 1}));
    EXPECT_EQ(fabric.switches()[1].name, "switch output 0");
    std::vector<Fabric::Link> links{fabric.find(fabric.first(NpuId(3), NpuId(1)))};
    while (const auto next = fabric.next(links.back(), NpuId(1))) links.push_back(fabric.find(*next));
    ASSERT_EQ(links.size(), 3U);
    EXPECT_EQ(links[1].owner, NpuId(0));
    EXPECT_TRUE(fabric.takes_whole(links[1]) && !fabric.takes_whole(links[2]));
    EXPECT_EQ(fabric.holds(links[0], Bytes(1000)), Time::from_ns(50));
    EXPECT_EQ(fabric.holds(links[1], Bytes(1000)), Time::from_ns(25));
    EXPECT_EQ(fabric.passes(links[1], Bytes(1000)), Time::from_ns(has_fast ? 25 + 25 : 25 + 50));
    EXPECT_EQ(fabric.passes(links[2], Bytes(1000)), Time::from_ns(has_fast ? 50 + 25 : 50 + 50));
    EXPECT_EQ(fabric.least_pass(), Time::from_ns(has_fast ? 25 : 50));
  }
}

TEST(Fabric, RefusesMoreLinksThanItCanNumber) {
  const Topology topology = with({dimension(Shape::fully_connected, 16384)});
  try {
    const Fabric fabric(topology);
    FAIL() << "268 million links";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_NE(std::string(error.what()).find("dimension 0 (FullyConnected)"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace orrery::network
