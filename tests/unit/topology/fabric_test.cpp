// Links and the routes over them, by hand and against the hops that the topology counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/topology/fabric.hpp"
#include "tiered_shapes.hpp"

namespace orrery::topology {
namespace {

Topology with_faults(const std::vector<Dimension>& dimensions, const std::vector<LinkFault>& faults = {}) {
  Links links(dimensions);
  for (const LinkFault& fault : faults) links.add(fault);
  return Topology(dimensions, links);
}

/// Returns the devices on the route, both ends included: -1 - s for switch s.
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

// In a Ring of 6 NPU 4 reaches NPU 0 upwards in two hops. NPU 1 and NPU 4 are as far apart either way, so messages
// between them go upwards.
TEST(Fabric, ARingLeadsTheShorterWayRoundUpwardsOnATie) {
  const Topology ring = with_faults({dimension_of(Shape("Ring"), 6)});
  const Fabric fabric(ring);
  EXPECT_EQ(fabric.num_links(), 12U);
  EXPECT_EQ(way(fabric, 4, 0), (Way{4, 5, 0}));
  EXPECT_EQ(way(fabric, 1, 5), (Way{1, 0, 5}));
  EXPECT_EQ(way(fabric, 1, 4), (Way{1, 2, 3, 4}));
  EXPECT_EQ(way(fabric, 4, 1), (Way{4, 5, 0, 1}));
}

// In a Mesh of 5, and in one of 2, messages go along the row in both directions.
TEST(Fabric, AMeshLeadsAlongTheRow) {
  const Topology row = with_faults({dimension_of(Shape("Mesh"), 5)});
  const Fabric fabric(row);
  EXPECT_EQ(way(fabric, 4, 0), (Way{4, 3, 2, 1, 0}));
  EXPECT_EQ(way(fabric, 1, 4), (Way{1, 2, 3, 4}));
  const Topology two = with_faults({dimension_of(Shape("Mesh"), 2)});
  EXPECT_EQ(way(Fabric(two), 1, 0), (Way{1, 0}));
}

// In a Ring of 2 and in a FullyConnected dimension of 4 each pair has its own link. In a Switch of 4 messages go up to
// switch 0 and down.
TEST(Fabric, OtherShapes) {
  const Topology two = with_faults({dimension_of(Shape("Ring"), 2)});
  EXPECT_EQ(Fabric(two).num_links(), 2U);
  EXPECT_EQ(way(Fabric(two), 1, 0), (Way{1, 0}));
  const Topology full = with_faults({dimension_of(Shape("FullyConnected"), 4)});
  EXPECT_EQ(Fabric(full).num_links(), 12U);
  EXPECT_EQ(way(Fabric(full), 3, 1), (Way{3, 1}));
  const Topology star = with_faults({dimension_of(Shape("Switch"), 4)});
  EXPECT_EQ(Fabric(star).num_links(), 8U);
  EXPECT_EQ(way(Fabric(star), 3, 1), (Way{3, -1, 1}));
}

// In a topology of 3 x 1 x 2 x 2 messages take the lowest dimension first. The dimension of one NPU has no links.
TEST(Fabric, GoesThroughTheDimensionsInOrder) {
  const Topology torus = with_faults({dimension_of(Shape("Ring"), 3), dimension_of(Shape("Ring"), 1),
                                      dimension_of(Shape("Switch"), 2), dimension_of(Shape("FullyConnected"), 2)});
  const Fabric fabric(torus);
  EXPECT_EQ(way(fabric, 0, 11), (Way{0, 2, -3, 5, 11}));
  EXPECT_EQ(way(fabric, 10, 1), (Way{10, -5, 7, 1}));
  EXPECT_EQ(fabric.links_per_npu(), 2U + 0U + 2U + 1U);
}

// Between all pairs of 240 NPUs in four dimensions, whole and with three failed links, a route has as many links as the
// topology counts hops.
TEST(Fabric, EveryWayHasTheHopsOfTheTopology) {
  const std::vector<Dimension> dimensions = {dimension_of(Shape("Ring"), 5), dimension_of(Shape("FullyConnected"), 4),
                                             dimension_of(Shape("Switch"), 3), dimension_of(Shape("Mesh"), 4)};
  const LinkFault cut{0, {NpuId(11), NpuId(12)}, {}, true};  // in one line
  const LinkFault gone{1, {NpuId(0), NpuId(15)}, {}, true};  // likewise
  const LinkFault more{1, {NpuId(5), NpuId(15)}, {}, true};
  for (const Topology& topology : {with_faults(dimensions), with_faults(dimensions, {cut, gone, more})}) {
    const Fabric fabric(topology);
    for (std::uint32_t from = 0; from < 240; ++from)
      for (std::uint32_t to = 0; to < 240; ++to) {
        if (from == to) continue;
        std::size_t hops = 0;
        topology.for_each_leg(NpuId(from), NpuId(to), [&](std::uint32_t, std::uint32_t count, const Port&) {
          hops += count;
          return true;
        });
        const Way devices = way(fabric, from, to);
        EXPECT_EQ(devices.size(), hops + 1) << from << " to " << to;
        EXPECT_EQ(devices.back(), static_cast<int>(to));
      }
  }
}

// Every link of a topology of 3 x 2 x 2 has one number, and the number leads back to its owner.
TEST(Fabric, NumbersEveryLinkOnce) {
  const Topology topology = with_faults(
      {dimension_of(Shape("FullyConnected"), 3), dimension_of(Shape("Ring"), 2), dimension_of(Shape("Switch"), 2)});
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

std::vector<std::string> names(const Fabric& fabric, const Way& devices) {
  const auto switches = fabric.switches();
  std::vector<std::string> names;
  for (const int device : devices)
    names.push_back(device < 0 ? switches[static_cast<std::size_t>(-1 - device)].name : std::to_string(device));
  return names;
}

using Names = std::vector<std::string>;

// With four ports an edge switch has two NPUs, a pod two edge switches, and there are four pods. NPU 6 is the first one
// at the second edge switch of pod 1. All that comes to it from other pods passes core switch 1, the second one of the
// first plane.
TEST(Fabric, AFatTreeLeadsUpToWhereTheWaysMeet) {
  const Topology topology = with_faults({fat_tree(4, 16)});
  const Fabric fabric(topology);
  EXPECT_EQ(fabric.links_per_npu(), 6U);
  const auto way_to = [&](std::uint32_t from, std::uint32_t to) { return names(fabric, way(fabric, from, to)); };
  EXPECT_EQ(way_to(7, 6), (Names{"7", "edge 3", "6"}));
  EXPECT_EQ(way_to(5, 6), (Names{"5", "edge 2", "aggregation 2", "edge 3", "6"}));
  EXPECT_EQ(way_to(0, 6), (Names{"0", "edge 0", "aggregation 0", "core 1", "aggregation 2", "edge 3", "6"}));
  EXPECT_EQ(way_to(15, 6), (Names{"15", "edge 7", "aggregation 6", "core 1", "aggregation 2", "edge 3", "6"}));
  EXPECT_EQ(way_to(6, 15), (Names{"6", "edge 3", "aggregation 3", "core 3", "aggregation 7", "edge 7", "15"}));
  EXPECT_EQ(fabric.switches().size(), 8U + 8U + 4U);
}

/// Returns how many routes take each link if every NPU sends to the one `shift` farther.
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

// A whole fat tree carries every shift of all NPUs without two routes over one link. If it is oversubscribed by o, at
// most o routes share a link.
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

// For each link between switches of trees and dragonflies: when it has failed, every route is a chain of links that
// ends at its destination, without this link, and routes that did not take it are as before.
TEST(Fabric, MessagesTakeAWayAroundEachFailedLinkOfSwitches) {
  for (const Dimension& dimension : {fat_tree(4, 16), fat_tree(6, 27), dragonfly(2, 1, 1, 6), dragonfly(4, 2, 1, 40)}) {
    const Topology whole = with_faults({dimension});
    const Fabric before(whole);
    const std::vector<Fabric::Switch> switches = before.switches();
    std::set<std::pair<std::int64_t, std::int64_t>> joined;
    for (std::uint32_t id = 0; id < before.num_links(); ++id) {
      const Fabric::Link link = before.find(LinkId(id));
      if (!before.exists(link)) continue;
      if (const auto [from, to] = before.ends(link); from < to && to < 0) joined.emplace(from, to);
    }
    ASSERT_FALSE(joined.empty());
    for (const auto& [a, b] : joined) {
      const auto name = [&](std::int64_t end) { return switches[static_cast<std::size_t>(-1 - end)].name; };
      const Topology faulty = with_faults({dimension}, {{0, {}, {}, true, {name(a), name(b)}}});
      const Fabric fabric(faulty);
      for (std::uint32_t from = 0; from < dimension.size; ++from)
        for (std::uint32_t to = 0; to < dimension.size; ++to) {
          if (from == to) continue;
          const Way devices = way(fabric, from, to), regular = way(before, from, to);
          ASSERT_FALSE(devices.empty());
          ASSERT_EQ(devices.back(), static_cast<int>(to));
          const auto takes_it = [&, one = a, other = b](const Way& taken) {
            for (std::size_t i = 1; i < taken.size(); ++i)
              if (std::minmax<std::int64_t>(taken[i - 1], taken[i]) == std::minmax(one, other)) return true;
            return false;
          };
          EXPECT_FALSE(takes_it(devices));
          EXPECT_TRUE(takes_it(regular) || devices == regular);
        }
    }
  }
}

// Three groups have two routers each, and a router one NPU and one link to another group: router 0 of a group leads to
// the next group, router 1 to the one after that.
TEST(Fabric, ADragonflyTakesTheMinimalWay) {
  const Topology topology = with_faults({dragonfly(2, 1, 1, 6)});
  const Fabric fabric(topology);
  EXPECT_EQ(fabric.links_per_npu(), 4U);
  const auto way_to = [&](std::uint32_t from, std::uint32_t to) { return names(fabric, way(fabric, from, to)); };
  EXPECT_EQ(way_to(0, 1), (Names{"0", "router 0", "router 1", "1"}));
  EXPECT_EQ(way_to(0, 3), (Names{"0", "router 0", "router 3", "3"}));
  EXPECT_EQ(way_to(0, 2), (Names{"0", "router 0", "router 3", "router 2", "2"}));
  EXPECT_EQ(way_to(0, 4), (Names{"0", "router 0", "router 1", "router 4", "4"}));
  EXPECT_EQ(way_to(0, 5), (Names{"0", "router 0", "router 1", "router 4", "router 5", "5"}));
}

/// Expects the hops of a minimal route: 2 at a router, 3 in a group, else one link between groups and at most one link
/// within either group.
void expect_hops(const Dimension& fly, std::uint32_t from, std::uint32_t to, std::size_t hops) {
  const std::uint32_t npus_per_router = fly.parameter("npus-per-router");
  const auto group = [&](std::uint32_t npu) { return npu / npus_per_router / fly.parameter("routers"); };
  if (from / npus_per_router == to / npus_per_router) {
    EXPECT_EQ(hops, 2U);
  } else if (group(from) == group(to)) {
    EXPECT_EQ(hops, 3U);
  } else {
    EXPECT_TRUE(hops >= 3 && hops <= 5) << hops;
  }
}

// For dragonflies of many sizes: every route is a chain of links that ends at its destination. Every used link has one
// that leads back, and as many links join two devices one way as the other. Links between groups are used evenly.
TEST(Fabric, DragonfliesOfAllSizes) {
  for (const auto& [a, p, h, g] : {std::array{4U, 2U, 2U, 9U},
                                   {4U, 2U, 2U, 4U},
                                   {4U, 2U, 2U, 2U},
                                   {4U, 2U, 2U, 1U},
                                   {1U, 3U, 2U, 3U},
                                   {5U, 1U, 3U, 7U},
                                   {3U, 2U, 5U, 16U},
                                   {2U, 4U, 1U, 3U}}) {
    const Dimension fly = dragonfly(a, p, h, g * a * p);
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

// A FullyConnected dimension of 16384 NPUs has 268 million links, more than are numbered.
TEST(Fabric, RefusesMoreLinksThanItCanNumber) {
  const Topology topology = with_faults({dimension_of(Shape("FullyConnected"), 16384)});
  try {
    const Fabric fabric(topology);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_NE(std::string(error.what()).find("dimension 0 (FullyConnected)"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace orrery::topology
