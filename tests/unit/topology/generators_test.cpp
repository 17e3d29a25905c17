// Generated graphs: nodes, links and degrees by their closed forms, all NPUs joined, and what is refused.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/topology/graph_generator.hpp"

namespace orrery::topology {
namespace {

using Numbers = std::map<std::string, std::vector<std::uint32_t>>;

const GraphGenerator& generator(std::string_view name) {
  const auto all = GraphGenerator::registry();
  return **std::ranges::find(all, name, &GraphGenerator::name);
}
GeneratedGraph make_graph(std::string_view name, const Numbers& numbers, const std::vector<ServerPlan>& servers = {}) {
  const GraphGenerator& of = generator(name);
  GraphParameters given(of.parameters, [](std::string_view key, const std::string& found, const std::string&) {
    throw Error(ErrorCode::bad_input, fmt::format("{}: {}", key, found));
  });
  for (const auto& [key, values] : numbers) given.set(key, values);
  given.servers = servers;
  return of.make(given);
}
std::string refusal(std::string_view name, const Numbers& numbers, const std::vector<ServerPlan>& servers = {}) {
  try {
    (void)make_graph(name, numbers, servers);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<std::uint32_t> degrees(const NetworkGraph& graph) {
  std::vector<std::uint32_t> degrees(graph.nodes.size());
  for (const auto& link : graph.links) {
    ++degrees[link.a];
    ++degrees[link.b];
  }
  return degrees;
}
/// Returns how many NPUs links lead to from NPU 0. Of NPUs only those that forward lead on.
std::size_t num_reached(const GeneratedGraph& made) {
  std::vector<std::vector<std::uint32_t>> next(made.graph.nodes.size());
  for (const auto& link : made.graph.links) {
    next[link.a].push_back(link.b);
    next[link.b].push_back(link.a);
  }
  std::vector<char> is_reached(made.graph.nodes.size(), 0);
  std::vector<std::uint32_t> left = {0};
  is_reached[0] = 1;
  while (!left.empty()) {
    const std::uint32_t at = left.back();
    left.pop_back();
    if (at != 0 && at < made.graph.num_npus && !made.hosts_forward) continue;
    for (const std::uint32_t other : next[at])
      if (is_reached[other] == 0) {
        is_reached[other] = 1;
        left.push_back(other);
      }
  }
  return static_cast<std::size_t>(std::count(is_reached.begin(), is_reached.begin() + made.graph.num_npus, 1));
}
/// Checks the counts, and that NPU 0 reaches all others.
void expect(const GeneratedGraph& made, std::uint32_t npus, std::uint32_t switches, std::size_t links) {
  EXPECT_EQ(made.graph.num_npus, npus);
  EXPECT_EQ(made.graph.num_switches(), switches);
  EXPECT_EQ(made.graph.links.size(), links);
  EXPECT_EQ(num_reached(made), npus);
}
std::vector<ServerPlan> servers(const std::vector<std::uint32_t>& sizes, ServerInside inside) {
  std::vector<ServerPlan> plans;
  for (const std::uint32_t size : sizes) plans.push_back(make_server(size, inside, {}));
  return plans;
}

/// Four leaves of three hosts and two spines with two links to each leaf: counts, degrees, and two Switches as
/// dimensions.
TEST(Generators, LeafSpine) {
  const auto made =
      make_graph("leaf-spine", {{"leaves", {4}}, {"hosts-per-leaf", {3}}, {"spines", {2}}, {"links-per-pair", {2}}});
  expect(made, 12, 6, 12 + 4 * 2 * 2);
  const auto of = degrees(made.graph);
  for (std::size_t leaf = 12; leaf < 16; ++leaf) EXPECT_EQ(of[leaf], 3 + 2 * 2);
  for (std::size_t spine = 16; spine < 18; ++spine) EXPECT_EQ(of[spine], 4 * 2);
  EXPECT_EQ(find_dimensions(made.graph), (std::vector<GraphDimension>{{"Switch", 3}, {"Switch", 4}}));
  EXPECT_EQ(refusal("leaf-spine", {{"leaves", {4}}, {"hosts-per-leaf", {3}}}), "spines: is missing");
  EXPECT_NE(refusal("leaf-spine", {{"leaves", {2}}, {"hosts-per-leaf", {3}}, {"spines", {0}}}), "");
}

/// A k-ary fat tree has k^3/4 hosts, 5 k^2/4 switches with k ports, and 3 k^3/4 links.
TEST(Generators, FatTree) {
  for (const std::uint32_t k : {2U, 4U, 8U}) {
    const auto made = make_graph("clos", {{"ports", {k}}});
    expect(made, k * k * k / 4, 5 * k * k / 4, 3 * k * k * k / 4);
    const auto of = degrees(made.graph);
    for (std::size_t node = made.graph.num_npus; node < of.size(); ++node) EXPECT_EQ(of[node], k);
  }
  // Half of the aggregation and core switches.
  expect(make_graph("clos", {{"ports", {8}}, {"oversubscription", {2}}}), 128, 32 + 16 + 8, 128 + 32 * 2 + 8 * 8);
}

/// Three pods of two edge and two aggregation switches, and six cores: each core has a link to every pod.
TEST(Generators, Clos) {
  const Numbers numbers = {
      {"pods", {3}}, {"edges-per-pod", {2}}, {"aggregations-per-pod", {2}}, {"hosts-per-edge", {4}}, {"cores", {6}}};
  const auto made = make_graph("clos", numbers);
  expect(made, 24, 6 + 6 + 6, 24 + 3 * 2 * 2 + 3 * 6);
  const auto of = degrees(made.graph);
  for (std::size_t node = 24; node < 30; ++node) EXPECT_EQ(of[node], 4 + 2);
  for (std::size_t node = 30; node < 36; ++node) EXPECT_EQ(of[node], 2 + 3);
  for (std::size_t node = 36; node < 42; ++node) EXPECT_EQ(of[node], 3);
  Numbers uneven = numbers;
  uneven["cores"] = {5};
  EXPECT_NE(refusal("clos", uneven), "");
  EXPECT_EQ(refusal("clos", {{"ports", {5}}}), "ports: found 5");
}

/// Four servers of four NPUs in two groups: NIC r is at rail switch r of the group. Without spines NPUs forward.
TEST(Generators, Rails) {
  const Numbers numbers = {{"servers-per-group", {2}}, {"spines", {3}}};
  const auto made = make_graph("rails", numbers, servers({4, 4, 4, 4}, ServerInside::one_switch));
  expect(made, 16, 4 + 2 * 4 + 3, 16 + 16 + 8 * 3);
  EXPECT_FALSE(made.hosts_forward);
  EXPECT_EQ(find_dimensions(made.graph), (std::vector<GraphDimension>{{"Switch", 4}, {"Switch", 2}, {"Switch", 2}}));
  // NIC r of a server is at switch r of its group, which are the switches after the four in servers.
  for (const auto& link : made.graph.links)
    if (link.a < 16 && link.b >= 20) {
      EXPECT_EQ(link.b, 20 + link.a / 8 * 4 + link.a % 4);
    }
  // Without spines NPUs forward between rails. A server with fewer NPUs has fewer rails.
  const auto alone = make_graph("rails", {}, servers({4, 6}, ServerInside::one_switch));
  expect(alone, 10, 2 + 6, 10 + 10);
  EXPECT_TRUE(alone.hosts_forward);
  EXPECT_NE(refusal("rails", {}), "");
  EXPECT_NE(refusal("rails", {{"servers-per-group", {1}}}, servers({2, 2}, ServerInside::ring)), "");
}

/// Groups of three leaves and two spines with four global links: all ports are used, equally many to each other group.
TEST(Generators, DragonflyPlus) {
  for (const std::uint32_t groups : {1U, 2U, 3U, 5U}) {
    const auto made = make_graph("dragonfly+", {{"groups", {groups}},
                                                {"leaves-per-group", {3}},
                                                {"spines-per-group", {2}},
                                                {"hosts-per-leaf", {2}},
                                                {"global-links", {4}}});
    if (groups == 3) expect(made, 18, 15, 18 + 3 * 6 + 3 * 8 / 2);
    if (groups == 1) expect(made, 6, 5, 6 + 6);
    if (groups == 5) expect(made, 30, 25, 30 + 5 * 6 + 5 * 8 / 2);
    const auto of = degrees(made.graph);
    for (std::uint32_t spine = 0; spine < 2 * groups; ++spine)
      EXPECT_EQ(of[groups * 9 + spine], 3 + (groups > 1 ? 4 : 0)) << groups;
    // Each two groups have equally many links.
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> between;
    for (const auto& link : made.graph.links)
      if (link.a >= groups * 9) ++between[std::minmax((link.a - groups * 9) / 2, (link.b - groups * 9) / 2)];
    EXPECT_EQ(between.size(), groups * (groups - 1) / 2);
    for (const auto& [pair, links] : between) EXPECT_EQ(links, 8 / static_cast<int>(groups - 1));
  }
  EXPECT_NE(refusal("dragonfly+", {{"groups", {4}},
                                   {"leaves-per-group", {1}},
                                   {"spines-per-group", {1}},
                                   {"hosts-per-leaf", {1}},
                                   {"global-links", {4}}}),
            "");
}

/// Links of a torus with a size of 2, of one with a twist, and of one whose positions are switches.
TEST(Generators, Torus) {
  const auto made = make_graph("torus", {{"sizes", {4, 3, 2}}});
  expect(made, 24, 0, 24 + 24 + 12);
  EXPECT_TRUE(made.hosts_forward);
  EXPECT_EQ(made.dimensions, (std::vector<GraphDimension>{{"Ring", 4}, {"Ring", 3}, {"Ring", 2}}));
  // With a twist of 2 the links that wrap in the second dimension lead two columns farther.
  const auto twisted = make_graph("torus", {{"sizes", {4, 2}}, {"twist", {2}}});
  expect(twisted, 8, 0, 8 + 8);
  EXPECT_EQ(twisted.graph.links.back().a, 7U);
  EXPECT_EQ(twisted.graph.links.back().b, 1U);
  EXPECT_EQ(twisted.dimensions.back().shape, "Switch");
  const auto switched =
      make_graph("torus", {{"sizes", {3, 3}}, {"hosts-per-switch", {2}}}, servers({2, 2, 1}, ServerInside::all_pairs));
  expect(switched, 5, 9, 2 + 5 + 18);
  EXPECT_NE(refusal("torus", {{"sizes", {4}}, {"twist", {1}}}), "");
  EXPECT_NE(refusal("torus", {{"sizes", {4, 1}}}), "");
}

/// A server that does not fit at what is left of a leaf begins at the next one.
TEST(Generators, UnlikeServers) {
  const Numbers numbers = {{"leaves", {2}}, {"hosts-per-leaf", {6}}, {"spines", {1}}};
  const auto made = make_graph("leaf-spine", numbers, servers({4, 6}, ServerInside::one_switch));
  expect(made, 10, 2 + 3, 10 + 10 + 2);
  for (const auto& link : made.graph.links)
    if (link.a < 10 && link.b >= 12) {
      EXPECT_EQ(link.b, link.a < 4 ? 12U : 13U);
    }
  EXPECT_NE(refusal("leaf-spine", numbers, servers({4, 6, 4}, ServerInside::one_switch)), "");
  EXPECT_EQ(make_server(2, ServerInside::ring, {}).links.size(), 1U);
  EXPECT_EQ(make_server(5, ServerInside::all_pairs, {}).links.size(), 10U);
}

}  // namespace
}  // namespace orrery::topology
