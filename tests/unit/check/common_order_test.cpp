#include "common_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace orrery::check {
namespace {

/// A member with `num_nodes` nodes and these dependencies; `labels` of the nodes that are collectives of the group.
Calls member(std::uint32_t num_nodes, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges,
             const std::vector<std::pair<std::uint32_t, std::uint64_t>>& labels) {
  Calls calls;
  for (std::uint32_t node = 0; node < num_nodes; ++node) {
    calls.first_successor.push_back(static_cast<std::uint32_t>(calls.successors.size()));
    for (const auto& [from, to] : edges)
      if (from == node) calls.successors.push_back(to);
  }
  calls.first_successor.push_back(static_cast<std::uint32_t>(calls.successors.size()));
  for (const auto& [node, label] : labels) {
    calls.nodes.push_back(node);
    calls.labels.push_back(label);
  }
  return calls;
}

// Two members each have two collectives in a chain, in opposite orders. There is no common order, and one step of each
// member shows it.
TEST(CommonOrder, OppositeChainsHaveNone) {
  const auto a = member(3, {{0, 1}, {1, 2}}, {{0, 100}, {2, 200}});
  const auto b = member(2, {{0, 1}}, {{0, 200}, {1, 100}});
  const auto steps = find_contradiction(a, b);
  ASSERT_EQ(steps.size(), 2U);
  for (const Before& step : steps) {
    EXPECT_EQ(step.first, 0U);
    EXPECT_EQ(step.then, 1U);
  }
  EXPECT_NE(steps[0].of_second_member, steps[1].of_second_member);
  EXPECT_TRUE(find_contradiction(a, a).empty());
}

// One member has a chain, and the other one leaves the order open. There is a common order.
TEST(CommonOrder, UnorderedCollectivesAreNoContradiction) {
  const auto chain = member(2, {{0, 1}}, {{0, 1}, {1, 2}});
  const auto loose = member(2, {}, {{0, 2}, {1, 1}});
  EXPECT_TRUE(find_contradiction(chain, loose).empty());
  // Two of one label, whose order nothing fixes, may be either of the other member's.
  const auto twins = member(3, {{0, 1}}, {{0, 1}, {1, 2}, {2, 1}});
  const auto other = member(3, {{0, 1}}, {{0, 2}, {1, 1}, {2, 1}});
  EXPECT_TRUE(find_contradiction(twins, other).empty());
}

// Two members have chains of the labels 1, 1, 2 and 1, 2, 1. The k-th of a label is the same collective, so there is no
// common order.
TEST(CommonOrder, RepeatedLabelsInChainsMeetInTurn) {
  const auto a = member(3, {{0, 1}, {1, 2}}, {{0, 1}, {1, 1}, {2, 2}});
  const auto b = member(3, {{0, 1}, {1, 2}}, {{0, 1}, {1, 2}, {2, 1}});
  EXPECT_FALSE(find_contradiction(a, b).empty());
}

// There are four collectives, and each member has two dependencies. Together they form one cycle, and all four steps
// are told.
TEST(CommonOrder, ACycleMayNeedFourSteps) {
  const auto a = member(4, {{0, 1}, {2, 3}}, {{0, 10}, {1, 11}, {2, 12}, {3, 13}});
  const auto b = member(4, {{1, 2}, {3, 0}}, {{0, 10}, {1, 11}, {2, 12}, {3, 13}});
  EXPECT_EQ(find_contradiction(a, b).size(), 4U);
}

/// All orders of a few collectives that both allow, by trying each.
bool has_common_order(std::uint32_t n, const std::set<std::pair<std::uint32_t, std::uint32_t>>& a,
                      const std::set<std::pair<std::uint32_t, std::uint32_t>>& b) {
  std::vector<std::uint32_t> place(n);
  std::iota(place.begin(), place.end(), 0U);
  const auto allows = [&](const auto& edges) {
    return std::ranges::all_of(edges, [&](const auto& edge) { return place[edge.first] < place[edge.second]; });
  };
  do
    if (allows(a) && allows(b)) return true;
  while (std::ranges::next_permutation(place).found);
  return false;
}

// 400 random pairs of members have 2 to 6 collectives. A contradiction is found if and only if no permutation of the
// collectives suits both.
TEST(CommonOrder, IsFoundIfAndOnlyIfThereIsOne) {
  std::mt19937 random(1);
  int with = 0, without = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const auto n = static_cast<std::uint32_t>(2 + random() % 5);
    std::set<std::pair<std::uint32_t, std::uint32_t>> edges[2];
    std::vector<std::pair<std::uint32_t, std::uint64_t>> labels;
    for (std::uint32_t i = 0; i < n; ++i) labels.emplace_back(i, 100 + i);
    for (auto& of_member : edges) {
      std::vector<std::uint32_t> order(n);
      std::iota(order.begin(), order.end(), 0U);
      std::ranges::shuffle(order, random);
      for (std::uint32_t i = 0; i < n; ++i)
        for (std::uint32_t j = i + 1; j < n; ++j)
          if (random() % 3 == 0) of_member.emplace(order[i], order[j]);
    }
    const auto calls = [&](const auto& of_member) { return member(n, {of_member.begin(), of_member.end()}, labels); };
    const bool common = has_common_order(n, edges[0], edges[1]);
    EXPECT_EQ(find_contradiction(calls(edges[0]), calls(edges[1])).empty(), common) << trial;
    ++(common ? with : without);
  }
  EXPECT_GT(with, 50);
  EXPECT_GT(without, 50);
}

}  // namespace
}  // namespace orrery::check
