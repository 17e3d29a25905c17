// Links and ways over them, by hand and against the topology's count of hops.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "orrery/base/error.hpp"
#include "orrery/network/link_delays.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::network {
namespace {

using topology::Dimension;
using topology::Fabric;
using topology::LinkFault;
using topology::LinkId;
using topology::Shape;
using topology::Topology;

Dimension dimension(Shape shape, std::uint32_t size) { return {shape, size, Bandwidth::from_bytes_per_ns(10), 100}; }

Topology with_faults(const std::vector<Dimension>& dimensions, const std::vector<LinkFault>& faults = {}) {
  topology::Links links(dimensions);
  for (const LinkFault& fault : faults) links.add(fault);
  return Topology(dimensions, links);
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
  const Topology ring = with_faults({dimension(Shape::ring, 6)});
  const Fabric fabric(ring);
  EXPECT_EQ(fabric.num_links(), 12U);
  EXPECT_EQ(way(fabric, 4, 0), (Way{4, 5, 0}));
  EXPECT_EQ(way(fabric, 1, 5), (Way{1, 0, 5}));
  EXPECT_EQ(way(fabric, 1, 4), (Way{1, 2, 3, 4}));
  EXPECT_EQ(way(fabric, 4, 1), (Way{4, 5, 0, 1}));
}

TEST(Fabric, AMeshLeadsAlongTheRow) {
  const Topology row = with_faults({dimension(Shape::mesh, 5)});
  const Fabric fabric(row);
  EXPECT_EQ(way(fabric, 4, 0), (Way{4, 3, 2, 1, 0}));
  EXPECT_EQ(way(fabric, 1, 4), (Way{1, 2, 3, 4}));
  const Topology two = with_faults({dimension(Shape::mesh, 2)});
  EXPECT_EQ(way(Fabric(two), 1, 0), (Way{1, 0}));
}

TEST(Fabric, OtherShapes) {
  const Topology two = with_faults({dimension(Shape::ring, 2)});
  EXPECT_EQ(Fabric(two).num_links(), 2U);
  EXPECT_EQ(way(Fabric(two), 1, 0), (Way{1, 0}));
  const Topology full = with_faults({dimension(Shape::fully_connected, 4)});
  EXPECT_EQ(Fabric(full).num_links(), 12U);
  EXPECT_EQ(way(Fabric(full), 3, 1), (Way{3, 1}));
  const Topology star = with_faults({dimension(Shape::switched, 4)});
  EXPECT_EQ(Fabric(star).num_links(), 8U);
  EXPECT_EQ(way(Fabric(star), 3, 1), (Way{3, -1, 1}));
}

// 3 x 1 x 2 x 2: the lowest dimension first; one of size 1 has no links.
TEST(Fabric, GoesThroughTheDimensionsInOrder) {
  const Topology torus = with_faults({dimension(Shape::ring, 3), dimension(Shape::ring, 1),
                                      dimension(Shape::switched, 2), dimension(Shape::fully_connected, 2)});
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
  for (const Topology& topology : {with_faults(dimensions), with_faults(dimensions, {cut, gone, more})}) {
    const Fabric fabric(topology);
    for (std::uint32_t from = 0; from < 240; ++from)
      for (std::uint32_t to = 0; to < 240; ++to) {
        if (from == to) continue;
        std::size_t hops = 0;
        topology.for_each_leg(NpuId(from), NpuId(to), [&](std::uint32_t, std::uint32_t count, const topology::Port&) {
          hops += count;
          return true;
        });
        const Way devices = way(fabric, from, to);
        EXPECT_EQ(devices.size(), hops + 1) << from << " to " << to;
        EXPECT_EQ(devices.back(), static_cast<int>(to));
      }
  }
}

TEST(Fabric, NumbersEveryLinkOnce) {
  const Topology topology =
      with_faults({dimension(Shape::fully_connected, 3), dimension(Shape::ring, 2), dimension(Shape::switched, 2)});
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
  const Topology topology = with_faults({dimension(Shape::ring, 4)}, {{0, {NpuId(1)}, {0.5, 3}, false}});
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

// Two links of 10 B/ns side by side. The switch of 4, oversubscribed by 2, passes four links' bandwidth; the latency of
// its way down is shared, also where NPU 1 has a shorter one.
TEST(Fabric, AnOversubscribedSwitchHasACore) {
  Dimension star = dimension(Shape::switched, 4);
  star.links = 2;
  star.oversubscription = 2;
  const LinkFault fast{0, {NpuId(1)}, {1, 0.5}, false};
  for (const bool has_fast : {false, true}) {
    const Topology topology = with_faults({star}, has_fast ? std::vector{fast} : std::vector<LinkFault>{});
    const Fabric fabric(topology);
    const LinkDelays delays(fabric, Rounding::up_to_ps);
    EXPECT_EQ(way(fabric, 3, 1), (Way{3, -1, -2, 1}));
    EXPECT_EQ(fabric.switches()[1].name, "switch output 0");
    std::vector<Fabric::Link> links{fabric.find(fabric.first(NpuId(3), NpuId(1)))};
    while (const auto next = fabric.next(links.back(), NpuId(1))) links.push_back(fabric.find(*next));
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

Dimension fat_tree(std::uint32_t ports, std::uint32_t size, double oversubscription = 1) {
  Dimension tree = dimension(Shape::fat_tree, size);
  tree.ports = ports;
  tree.oversubscription = oversubscription;
  return tree;
}

Dimension dragonfly(std::uint32_t routers, std::uint32_t npus, std::uint32_t links, std::uint32_t groups) {
  Dimension fly = dimension(Shape::dragonfly, groups * routers * npus);
  fly.routers = routers;
  fly.npus_per_router = npus;
  fly.global_links = links;
  return fly;
}

std::vector<std::string> names(const Fabric& fabric, const Way& devices) {
  const auto switches = fabric.switches();
  std::vector<std::string> names;
  for (const int device : devices)
    names.push_back(device < 0 ? switches[static_cast<std::size_t>(-1 - device)].name : std::to_string(device));
  return names;
}

using Names = std::vector<std::string>;

// Four ports: two NPUs at an edge switch, two edge switches in a pod, four pods. NPU 6 is the first one at the second
// edge switch of pod 1: all that comes from other pods passes core switch 1, the second one of the first plane.
TEST(Fabric, AFatTreeLeadsUpToWhereTheWaysMeet) {
  const Topology topology = with_faults({fat_tree(4, 16)});
  const Fabric fabric(topology);
  const LinkDelays delays(fabric, Rounding::up_to_ps);
  EXPECT_EQ(fabric.links_per_npu(), 6U);
  const auto way_to = [&](std::uint32_t from, std::uint32_t to) { return names(fabric, way(fabric, from, to)); };
  EXPECT_EQ(way_to(7, 6), (Names{"7", "edge 3", "6"}));
  EXPECT_EQ(way_to(5, 6), (Names{"5", "edge 2", "aggregation 2", "edge 3", "6"}));
  EXPECT_EQ(way_to(0, 6), (Names{"0", "edge 0", "aggregation 0", "core 1", "aggregation 2", "edge 3", "6"}));
  EXPECT_EQ(way_to(15, 6), (Names{"15", "edge 7", "aggregation 6", "core 1", "aggregation 2", "edge 3", "6"}));
  EXPECT_EQ(way_to(6, 15), (Names{"6", "edge 3", "aggregation 3", "core 3", "aggregation 7", "edge 7", "15"}));
  EXPECT_EQ(fabric.switches().size(), 8U + 8U + 4U);
  EXPECT_EQ(delays.least_pass(), Time::from_ns(100));
}

/// Links of the ways from each NPU to the one `shift` farther, and how many ways take each.
std::map<std::uint32_t, int> taken(const Fabric& fabric, std::uint32_t size, std::uint32_t shift) {
  std::map<std::uint32_t, int> times;
  for (std::uint32_t from = 0; from < size; ++from) {
    const NpuId to((from + shift) % size);
    for (std::optional<LinkId> at = fabric.first(NpuId(from), to); at; at = fabric.next(fabric.find(*at), to))
      ++times[at->value()];
  }
  return times;
}

int most(const std::map<std::uint32_t, int>& times) {
  int most = 0;
  for (const auto& [link, count] : times) most = std::max(most, count);
  return most;
}

// A whole fat tree carries every shift of all NPUs without two ways over one link; oversubscribed by o, o over one.
TEST(Fabric, AFatTreeCarriesShifts) {
  for (const std::uint32_t k : {2U, 4U, 6U, 8U}) {
    const std::uint32_t size = k * k * k / 4;
    for (const double o : {1.0, 2.0, 4.0}) {
      if (k / 2 % static_cast<std::uint32_t>(o) != 0) continue;
      const Topology topology = with_faults({fat_tree(k, size, o)});
      const Fabric fabric(topology);
      for (std::uint32_t shift = 1; shift < size; ++shift)
        EXPECT_LE(most(taken(fabric, size, shift)), static_cast<int>(o)) << k << ", " << shift;
      EXPECT_EQ(most(taken(fabric, size, size / 2)), static_cast<int>(o)) << k;
    }
  }
}

// Three groups of two routers with one NPU and one link to other groups each: from router 0 of a group to the next
// one, from router 1 to the one after that.
TEST(Fabric, ADragonflyTakesTheMinimalWay) {
  const Topology topology = with_faults({dragonfly(2, 1, 1, 3)});
  const Fabric fabric(topology);
  EXPECT_EQ(fabric.links_per_npu(), 4U);
  const auto way_to = [&](std::uint32_t from, std::uint32_t to) { return names(fabric, way(fabric, from, to)); };
  EXPECT_EQ(way_to(0, 1), (Names{"0", "router 0", "router 1", "1"}));
  EXPECT_EQ(way_to(0, 3), (Names{"0", "router 0", "router 3", "3"}));
  EXPECT_EQ(way_to(0, 2), (Names{"0", "router 0", "router 3", "router 2", "2"}));
  EXPECT_EQ(way_to(0, 4), (Names{"0", "router 0", "router 1", "router 4", "4"}));
  EXPECT_EQ(way_to(0, 5), (Names{"0", "router 0", "router 1", "router 4", "router 5", "5"}));
}

/// Hops as the structure has them: within a router 2, within a group 3, else one link between groups with a router of
/// either group before and behind it at the most.
void expect_hops(const Dimension& fly, std::uint32_t from, std::uint32_t to, std::size_t hops) {
  const auto group = [&](std::uint32_t npu) { return npu / fly.npus_per_router / fly.routers; };
  if (from / fly.npus_per_router == to / fly.npus_per_router) {
    EXPECT_EQ(hops, 2U);
  } else if (group(from) == group(to)) {
    EXPECT_EQ(hops, 3U);
  } else {
    EXPECT_TRUE(hops >= 3 && hops <= 5) << hops;
  }
}

// Any sizes: every way is a chain of links that are there and ends where it should; no two links join the same devices
// but the several ones between two groups; every link has one that leads back; links between groups are used evenly.
TEST(Fabric, DragonfliesOfAllSizes) {
  for (const auto& [a, p, h, g] : {std::array{4U, 2U, 2U, 9U},
                                   {4U, 2U, 2U, 4U},
                                   {4U, 2U, 2U, 2U},
                                   {4U, 2U, 2U, 1U},
                                   {1U, 3U, 2U, 3U},
                                   {5U, 1U, 3U, 7U},
                                   {3U, 2U, 5U, 16U},
                                   {2U, 4U, 1U, 3U}}) {
    const Dimension fly = dragonfly(a, p, h, g);
    const Topology topology = with_faults({fly});
    const Fabric fabric(topology);
    std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> used;
    std::map<std::uint32_t, int> over_groups;
    for (std::uint32_t from = 0; from < fly.size; ++from)
      for (std::uint32_t to = 0; to < fly.size; ++to) {
        if (from == to) continue;
        const Way devices = way(fabric, from, to);
        expect_hops(fly, from, to, devices.size() - 1);
        ASSERT_EQ(devices.back(), static_cast<int>(to));
        for (std::optional<LinkId> at = fabric.first(NpuId(from), NpuId(to)); at;
             at = fabric.next(fabric.find(*at), NpuId(to))) {
          const auto [begin, end] = fabric.ends(fabric.find(*at));
          used[at->value()] = {begin, end};
          if (begin < 0 && end < 0 && (-1 - begin) / a != (-1 - end) / a) ++over_groups[at->value()];
        }
      }
    EXPECT_EQ(over_groups.size(), a * h / std::max(g - 1, 1U) * g * (g - 1)) << g;
    for (const auto& [link, count] : over_groups)
      EXPECT_LE(count, static_cast<int>(a * p * ((a * p - 1) / (a * h / (g - 1)) + 1)));
    std::map<std::pair<std::int64_t, std::int64_t>, int> joined;
    for (const auto& [link, ends] : used) ++joined[ends];
    for (const auto& [ends, count] : joined) EXPECT_EQ(count, (joined[{ends.second, ends.first}]));
  }
}

// A slow port is that of the links between an NPU and its switch; those between switches are as they should be.
TEST(Fabric, PortsOfAFatTreeAreThoseOfItsNpus) {
  const Topology topology = with_faults({fat_tree(4, 16)}, {{0, {NpuId(5)}, {0.5, 1}, false}});
  const Fabric fabric(topology);
  const LinkDelays delays(fabric, Rounding::up_to_ps);
  const auto holds = [&](std::uint32_t from, std::uint32_t to) {
    std::vector<std::int64_t> ns;
    for (std::optional<LinkId> at = fabric.first(NpuId(from), NpuId(to)); at;
         at = fabric.next(fabric.find(*at), NpuId(to)))
      ns.push_back(delays.holds(fabric.find(*at), Bytes(1000)).ps() / 1000);
    return ns;
  };
  EXPECT_EQ(holds(5, 6), (std::vector<std::int64_t>{200, 100, 100, 100}));
  EXPECT_EQ(holds(4, 5), (std::vector<std::int64_t>{100, 200}));
  EXPECT_EQ(holds(4, 6), (std::vector<std::int64_t>{100, 100, 100, 100}));
}

TEST(Fabric, RefusesMoreLinksThanItCanNumber) {
  const Topology topology = with_faults({dimension(Shape::fully_connected, 16384)});
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
