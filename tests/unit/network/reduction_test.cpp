// Reduction in switches of the packet network: times by hand, contention, pauses, operations, trees and refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/network/flow_run.hpp"
#include "orrery/network/reduction_trees.hpp"

namespace orrery::network {
namespace {

// A packet of 4,160 B takes 83.2 ns at 400 Gb/s.
constexpr std::int64_t packet = 83'200, link_delay = 500'000, switch_delay = 100'000, mebibyte = 1 << 20;
constexpr std::int64_t packets_of_mebibyte = 256;

void connect(PacketGraph& graph, std::uint32_t a, std::uint32_t b) {
  graph.add_link({a, b, 400'000'000'000, Time::from_ps(link_delay)});
}

FlowScenario empty_scenario() {
  FlowScenario scenario;
  scenario.rules.payload = 4096;
  scenario.rules.header = 64;
  scenario.rules.window = {PacketWindow::Kind::none, 0};
  return scenario;
}

/// Returns hosts on one switch.
FlowScenario star(std::uint32_t hosts) {
  FlowScenario scenario = empty_scenario();
  for (std::uint32_t h = 0; h < hosts; ++h) scenario.graph.add_host();
  const std::uint32_t top = scenario.graph.add_switch(Bytes(32U << 20U));
  for (std::uint32_t h = 0; h < hosts; ++h) connect(scenario.graph, h, top);
  return scenario;
}

/// Returns leaves of four hosts below spines.
FlowScenario two_levels(std::uint32_t leaves, std::uint32_t spines) {
  FlowScenario scenario = empty_scenario();
  for (std::uint32_t h = 0; h < 4 * leaves; ++h) scenario.graph.add_host();
  for (std::uint32_t s = 0; s < leaves + spines; ++s) scenario.graph.add_switch(Bytes(32U << 20U));
  for (std::uint32_t h = 0; h < 4 * leaves; ++h) connect(scenario.graph, h, 4 * leaves + h / 4);
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf)
    for (std::uint32_t spine = 0; spine < spines; ++spine)
      connect(scenario.graph, 4 * leaves + leaf, 5 * leaves + spine);
  return scenario;
}

ReductionSpec reduction(const FlowScenario& scenario, std::int64_t bytes, std::uint32_t tree = 0) {
  ReductionSpec spec;
  spec.hosts.resize(scenario.graph.num_hosts());
  std::iota(spec.hosts.begin(), spec.hosts.end(), 0U);
  spec.starts.assign(spec.hosts.size(), Time::zero());
  spec.bytes = static_cast<std::uint64_t>(bytes);
  spec.tree = tree;
  return spec;
}

FlowResults run(const FlowScenario& scenario) {
  const auto world = parallel::make_serial();
  return run_flows(scenario, *world);
}

std::string refusal(const FlowScenario& scenario) {
  try {
    run(scenario);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return {};
}

constexpr std::int64_t star_takes = packets_of_mebibyte * packet + packet + 2 * link_delay + switch_delay;
constexpr std::int64_t two_levels_take = packets_of_mebibyte * packet + 3 * packet + 4 * link_delay + 2 * switch_delay;

// One switch: k T + T + 2 d + delay for k packets of time T. The sum leaves when the next packet has come: two slots.
TEST(Reduction, FormulaOfAStar) {
  FlowScenario scenario = star(8);
  scenario.reductions = {reduction(scenario, mebibyte)};
  const FlowResults results = run(scenario);
  EXPECT_EQ(results.reductions[0].start, Time::zero());
  EXPECT_EQ(results.reductions[0].end.ps(), star_takes);
  EXPECT_EQ(results.reductions[0].first_end.ps(), star_takes);
  ASSERT_EQ(results.records.reductions.size(), 1U);
  EXPECT_EQ(results.records.reductions[0].operations, 1U);
  EXPECT_EQ(results.records.reductions[0].packets, 256U);
  // The sum of a packet leaves 100 ns after its last contribution, when the next packet has come.
  EXPECT_EQ(results.records.reductions[0].most_slots, 2U);
}

// Two levels: k T + 3 T + 4 d + 2 delay. A second operation of the tree begins when the first one is over.
TEST(Reduction, FormulaOfTwoLevels) {
  FlowScenario scenario = two_levels(4, 1);
  scenario.reductions = {reduction(scenario, mebibyte)};
  EXPECT_EQ(run(scenario).reductions[0].end.ps(), two_levels_take);
  scenario.reductions = {reduction(scenario, mebibyte), reduction(scenario, mebibyte)};
  const FlowResults two = run(scenario);
  EXPECT_EQ(two.reductions[0].end.ps(), two_levels_take);
  EXPECT_EQ(two.reductions[1].end.ps(), 2 * two_levels_take);
}

// With two slots two packets go round at a time: a round takes 2 T + 2 d + delay, and two packets more follow by T.
TEST(Reduction, SlotsHoldHostsBack) {
  FlowScenario scenario = star(4);
  scenario.rules.reduction.slots = 2;
  scenario.reductions = {reduction(scenario, std::int64_t{6} * 4096)};
  const std::int64_t round = 2 * packet + 2 * link_delay + switch_delay;
  EXPECT_EQ(run(scenario).reductions[0].end.ps(), 3 * round + packet);
}

// One header is all that goes round.
TEST(Reduction, WithoutBytes) {
  FlowScenario scenario = star(4);
  scenario.reductions = {reduction(scenario, 0)};
  EXPECT_EQ(run(scenario).reductions[0].end.ps(), 2 * std::int64_t{64} * 20 + 2 * link_delay + switch_delay);
}

// The other hosts contribute headers, which are there earlier than the data.
TEST(Reduction, Broadcast) {
  FlowScenario scenario = star(4);
  scenario.reductions = {reduction(scenario, mebibyte)};
  scenario.reductions[0].source = 2;
  const FlowResults results = run(scenario);
  EXPECT_EQ(results.reductions[0].end.ps(), star_takes);
  for (const PortRecord& port : results.ports) {
    if (port.node == 4) continue;
    EXPECT_EQ(port.bytes, port.node == 2 ? 256U * 4160 : 256U * 64) << port.node;
  }
}

// A host that comes late holds up all others, whose packets fill their slots.
TEST(Reduction, WaitsForTheLast) {
  FlowScenario scenario = star(8);
  scenario.reductions = {reduction(scenario, mebibyte)};
  scenario.reductions[0].starts[3] = Time::from_ps(30'000'000);
  const FlowResults results = run(scenario);
  EXPECT_EQ(results.reductions[0].end.ps(), star_takes + 30'000'000);
  EXPECT_EQ(results.records.reductions[0].most_slots, 256U);
}

// Host 0 sends a flow of 256 packets too, which takes turns with its contributions and leaves one by one in between:
// the last contribution is the 511th or 512th packet of its port.
TEST(Reduction, TakesTurnsWithFlows) {
  FlowScenario scenario = star(4);
  scenario.reductions = {reduction(scenario, mebibyte)};
  scenario.flows = {{.source = 0, .destination = 1, .bytes = mebibyte}};
  const Time end = run(scenario).reductions[0].end;
  EXPECT_GE(end.ps(), star_takes + (packets_of_mebibyte - 1) * packet);
  EXPECT_LE(end.ps(), star_takes + (packets_of_mebibyte + 1) * packet);
}

// Two trees over two spines work at the same time, and share the links of the hosts only. One of them alone is slower.
TEST(Reduction, SeveralTrees) {
  FlowScenario scenario = two_levels(2, 2);
  scenario.rules.reduction.trees = 2;
  scenario.rules.reduction.most_trees = 2;
  scenario.rules.reduction.operations = 2;
  scenario.reductions = {reduction(scenario, mebibyte, 0), reduction(scenario, mebibyte, 1)};
  const Time both = run(scenario).reductions[1].end;
  EXPECT_EQ(both.ps(), two_levels_take + packets_of_mebibyte * packet);
  scenario.rules.reduction.operations = 1;  // the leaves carry out one after the other
  EXPECT_GE(run(scenario).reductions[1].end, both);
}

// A port of the switch is busy with an incast: its queue counts at the ports of the hosts, which are paused. Nothing is
// lost, and no byte stays counted (run_flows checks that).
TEST(Reduction, PausesReachTheHosts) {
  FlowScenario scenario = two_levels(2, 1);
  scenario.graph.set_buffers(Bytes(300'000));
  scenario.reductions = {reduction(scenario, mebibyte)};
  for (std::uint32_t h = 1; h < 8; ++h)
    scenario.flows.push_back({.source = h, .destination = 0, .bytes = 400'000, .ports = h});
  const FlowResults results = run(scenario);
  std::uint64_t pauses = 0, drops = 0;
  for (const PortRecord& port : results.ports) {
    pauses += port.node < 8 ? port.pauses : 0;
    drops += port.drops;
  }
  EXPECT_GT(pauses, 0U);
  EXPECT_EQ(drops, 0U);
  EXPECT_GT(results.reductions[0].end.ps(), two_levels_take);
}

// Two leaves and two spines: the roots for all hosts are the spines, and for hosts of one leaf that leaf.
TEST(Reduction, RootsAreTheNearestSwitches) {
  const FlowScenario scenario = two_levels(2, 2);
  ReductionRules rules;
  rules.trees = 2;
  rules.most_trees = 8;
  rules.operations = 8;
  ReductionTrees trees(scenario.graph, rules, {});
  const std::vector<std::uint32_t> all{0, 1, 2, 3, 4, 5, 6, 7}, one_leaf{4, 5, 6};
  const auto root_of = [&](std::uint32_t tree) {
    std::uint32_t place = trees.hosts_of(tree).begin()->second;
    while (trees[place].parent != ReductionTrees::none) place = trees[place].parent;
    return trees[place].node;
  };
  const std::uint32_t first = trees.add_communicator(all, 0);
  EXPECT_EQ(root_of(first), 10U);  // the spines, from which all hosts are two links away
  EXPECT_EQ(root_of(first + 1), 11U);
  const std::uint32_t second = trees.add_communicator(one_leaf, 1);
  EXPECT_EQ(root_of(second), 9U);
  trees.finish();
}

// Two leaves and two spines: too many trees, links that fail, and branches that are no tree are refused with the key.
TEST(Reduction, Refuses) {
  FlowScenario scenario = two_levels(2, 2);
  scenario.rules.reduction.trees = 2;
  scenario.reductions = {reduction(scenario, 4096)};
  EXPECT_NE(refusal(scenario).find("most-trees"), std::string::npos);
  scenario.rules.reduction = {};
  scenario.failures = {{8, Time::from_ns(1)}};  // the first leaf to the first spine
  EXPECT_NE(refusal(scenario).find("which fails after"), std::string::npos);
  EXPECT_NE(refusal(scenario).find("system.network.graph"), std::string::npos);
  scenario.trees = {{{0, 8}, {1, 8}, {2, 8}, {3, 8}, {4, 9}, {5, 9}, {6, 9}, {7, 9}, {8, 10}, {9, 10}}};
  EXPECT_NE(refusal(scenario).find("which fails after"), std::string::npos);
  EXPECT_NE(refusal(scenario).find("workload.trees"), std::string::npos);
  scenario.trees = {};
  scenario.failures = {};
  scenario.rules.reduction.trees = 9;
  EXPECT_NE(refusal(scenario).find("reduction.trees"), std::string::npos);
  scenario.rules.reduction = {};
  scenario.trees = {{{0, 8}, {1, 8}, {2, 8}, {3, 8}, {4, 9}, {5, 9}, {6, 9}, {7, 9}}};
  EXPECT_NE(refusal(scenario).find("one root"), std::string::npos);
  scenario.trees[0][8] = 9;  // which no link joins
  EXPECT_NE(refusal(scenario).find("which no link joins"), std::string::npos);
}

}  // namespace
}  // namespace orrery::network
