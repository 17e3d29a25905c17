// The packet network: transmission times, routes, windows, where nodes are, and flows on small graphs.
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/network/flow_run.hpp"
#include "orrery/network/graph_delays.hpp"

namespace orrery::network {
namespace {

constexpr std::uint64_t gbps = 1'000'000'000;
constexpr Time microsecond = Time::from_ns(1000);

/// Two leaves (nodes 4 and 5) of two hosts each, and two spines (6 and 7).
PacketGraph leaf_spine() {
  PacketGraph graph;
  for (int h = 0; h < 4; ++h) graph.add_host();
  for (int s = 0; s < 4; ++s) graph.add_switch(Bytes(1U << 25U));
  for (std::uint32_t h = 0; h < 4; ++h) graph.add_link({h, 4 + h / 2, 100 * gbps, microsecond});
  for (const std::uint32_t leaf : {4U, 5U})
    for (const std::uint32_t spine : {6U, 7U}) graph.add_link({leaf, spine, 100 * gbps, microsecond});
  return graph;
}

const RouteRules shortest{.paths = GraphRoutes::shortest};

// 1,036 B at 100 Gb/s take 82.88 ns; thirds are rounded; what does not fit is never.
TEST(TransmissionTime, IsRoundedToTheNearestTick) {
  EXPECT_EQ(transmission_time(1036, 100 * gbps, Time::from_ps(1)), Time::from_ps(82'880));
  EXPECT_EQ(transmission_time(1036, 100 * gbps, Time::from_ns(1)), Time::from_ns(83));
  EXPECT_EQ(transmission_time(1, 3, Time::from_ps(1)), Time::from_ps(2'666'666'666'667));
  EXPECT_EQ(transmission_time(~std::uint64_t{0}, 1, Time::from_ps(1)), Time::max());
}

// RoCE is the default transport. The transport of each control is in the registry, and each transport has controls.
TEST(Transports, HaveTheControlsThatNameThem) {
  EXPECT_EQ(TransportName().name(), "roce");
  std::set<std::string_view> named;
  for (const ControlName control : ControlName::all()) {
    EXPECT_TRUE(TransportName::find(control->transport)) << control.name();
    named.insert(control->transport);
  }
  EXPECT_EQ(named, (std::set<std::string_view>{"roce", "tcp", "uec"}));
}

// Switches share buffers with RoCE, unless links have credits. UEC brings queues of its own, and repeats its last
// acknowledgements.
TEST(Transports, SayWhichQueuesTheyHave) {
  PacketRules rules;
  EXPECT_TRUE(rules.keeps_buffers());
  EXPECT_FALSE(rules.tells_again());
  rules.uses_credits = true;
  EXPECT_FALSE(rules.keeps_buffers());
  rules = {};
  rules.transport = TransportName("uec");
  EXPECT_FALSE(rules.keeps_buffers());
  EXPECT_TRUE(rules.tells_again());
}

// Two hosts of different leaves have two paths. 50 flows with different ports use both.
TEST(PacketRouter, SpreadsFlowsOverEqualPaths) {
  const PacketGraph graph = leaf_spine();
  const PacketRouter router(graph, std::span<const LinkFailure>{}, shortest);
  std::set<std::uint32_t> spines;
  for (std::uint32_t source_port = 10000; source_port < 10050; ++source_port) {
    const std::uint16_t port = router.port(4, {0, 2, source_port | 100U << 16U}, Time::zero());
    spines.insert(graph.ports(4)[port].peer);
  }
  EXPECT_EQ(spines, (std::set<std::uint32_t>{6, 7}));
}

// The link to one spine never works, that to the other fails after 1 us: then no way leads to the other leaf.
TEST(PacketRouter, LeavesOutLinksThatHaveFailed) {
  const PacketGraph graph = leaf_spine();
  const std::vector<LinkFailure> failures{{6, Time::zero()}, {7, microsecond}};  // from node 5 to each spine
  const PacketRouter router(graph, failures, shortest);
  for (std::uint32_t source_port = 0; source_port < 20; ++source_port) {
    const PacketRouter::FlowKey key{0, 2, source_port};
    EXPECT_EQ(graph.ports(4)[router.port(4, key, Time::zero())].peer, 7U);
    EXPECT_EQ(router.port(4, key, microsecond), PacketRouter::no_way);
    EXPECT_NE(router.port(4, {0, 1, source_port}, microsecond), PacketRouter::no_way);
  }
}

// A table sends packets from leaf 4 to host 2 over spine 7 only, and to host 3 over both. A link that fails is left
// out.
TEST(PacketRouter, TakesATable) {
  const PacketGraph graph = leaf_spine();
  RouteRules rules;
  rules.table = {{4, 2, 7}, {4, 3, 6}, {4, 3, 7}};
  const std::vector<LinkFailure> failures{{5, microsecond}};  // from node 4 to node 7
  const PacketRouter router(graph, failures, rules);
  EXPECT_EQ(graph.ports(4)[router.port(4, {0, 2, 1}, Time::zero())].peer, 7U);
  EXPECT_EQ(router.ports(4, 3, Time::zero()).size(), 2U);
  EXPECT_EQ(router.port(4, {0, 2, 1}, microsecond), PacketRouter::no_way);
  EXPECT_EQ(graph.ports(4)[router.port(4, {0, 3, 1}, microsecond)].peer, 6U);
  EXPECT_EQ(router.port(5, {2, 0, 1}, Time::zero()), PacketRouter::no_way);
}

// 4 links of 1 us and 100 Gb/s between leaves, 2 within a leaf. A payload of 1,000 B takes 80 ns on each.
TEST(FollowPath, SumsDelaysAndPayloads) {
  const PacketGraph graph = leaf_spine();
  const PacketRouter router(graph, std::span<const LinkFailure>{}, shortest);
  const PathFigures far = follow_path(graph, router, {0, 2, 0}, 1000);
  EXPECT_EQ(far.round_trip, Time::from_ns(2 * 4000 + 4 * 80));
  EXPECT_EQ(far.bandwidth_delay_product(), 104'000U);
  EXPECT_EQ(follow_path(graph, router, {0, 1, 0}, 1000).bandwidth_delay_product(), 52'000U);
}

/// Two hosts at a switch. The link of host 0 is slower down from the switch than up, and longer.
PacketGraph two_ways() {
  PacketGraph graph;
  graph.add_host();
  graph.add_host();
  graph.add_switch(Bytes(1U << 25U));
  PacketGraph::Link link{0, 2, 100 * gbps, microsecond};
  link.back = {25 * gbps, microsecond * 3};
  graph.add_link(link);
  graph.add_link({2, 1, 100 * gbps, microsecond});
  return graph;
}

// What leaves a port takes one direction of its link, and what comes in takes the other.
TEST(PacketGraph, LinksHaveAWayInEachDirection) {
  const PacketGraph graph = two_ways();
  const PacketGraph::Way up{100 * gbps, microsecond}, down{25 * gbps, microsecond * 3};
  EXPECT_EQ(graph.way_of(graph.ports(0)[0]), up);
  EXPECT_EQ(graph.way_into(graph.ports(0)[0]), down);
  EXPECT_EQ(graph.way_of(graph.ports(2)[0]), down);
  EXPECT_EQ(graph.way_into(graph.ports(2)[0]), up);
  EXPECT_EQ(graph.way_of(graph.ports(2)[1]), graph.way_into(graph.ports(2)[1]))
      << "both are alike where nothing is said";
}

// Delays there and back count, and the rates of the way there: 80 ns each at 100 Gb/s, 320 ns at 25 Gb/s.
TEST(FollowPath, TakesTheDirectionOfTheFlow) {
  const PacketGraph graph = two_ways();
  const PacketRouter router(graph, std::span<const LinkFailure>{}, shortest);
  const PathFigures up = follow_path(graph, router, {0, 1, 0}, 1000),
                    down = follow_path(graph, router, {1, 0, 0}, 1000);
  EXPECT_EQ(up.round_trip, Time::from_ns(6000 + 2 * 80));
  EXPECT_EQ(down.round_trip, Time::from_ns(6000 + 80 + 320));
  EXPECT_EQ(up.least_rate, 100 * gbps);
  EXPECT_EQ(down.least_rate, 25 * gbps);
}

// Ten packets of 82.88 ns at 100 Gb/s, 331.52 ns at 25 Gb/s, at the pace of the slowest link. A simulation says the
// same.
TEST(TimeAlone, TakesTheDirectionOfTheFlow) {
  PacketRules rules;
  rules.window.kind = PacketWindow::Kind::none;
  FlowScenario scenario{two_ways(), rules, {}, shortest, {{.source = 0, .destination = 1, .bytes = 10'000}}};
  const PacketRouter router(scenario.graph, std::span<const LinkFailure>{}, shortest);
  const auto world = parallel::make_serial();
  const Time fast = Time::from_ps(82'880), slow = Time::from_ps(331'520);
  for (const auto& [source, expected] :
       {std::pair(0U, fast * 11 + microsecond * 2), std::pair(1U, fast + slow * 10 + microsecond * 4)}) {
    EXPECT_EQ(time_alone(scenario.graph, router, rules, {source, 1 - source, 0}, 10'000, Time::zero()), expected);
    scenario.flows[0].source = source;
    scenario.flows[0].destination = 1 - source;
    EXPECT_EQ(run_flows(scenario, *world, EventOrder::by_system).flows[0].received, expected);
  }
}

// A dimension has the slowest and the longest of its routes, which go both ways.
TEST(GraphDelays, CoverBothDirections) {
  GivenGraph given;
  given.graph = two_ways();
  const auto delays = delays_of_dimensions(given, {{2, GraphDimension::Partners::next}});
  EXPECT_EQ(delays[0].latency, microsecond * 4);
  EXPECT_EQ(delays[0].rate, 25 * gbps);
}

// Two ways of two links between hosts. The widest is another one in each direction.
TEST(PacketRouter, TakesTheWidestPathOfADirection) {
  PacketGraph graph;
  graph.add_host();
  graph.add_host();
  for (int s = 0; s < 2; ++s) graph.add_switch({});
  const PacketGraph::Way wide{100 * gbps, microsecond}, narrow{10 * gbps, microsecond};
  const auto join = [&](std::uint32_t a, std::uint32_t b, PacketGraph::Way there, PacketGraph::Way back) {
    PacketGraph::Link link{a, b, there.rate, there.delay};
    link.back = back;
    graph.add_link(link);
  };
  join(0, 2, narrow, wide);
  join(0, 3, wide, narrow);
  for (const std::uint32_t s : {2U, 3U}) join(1, s, wide, wide);
  const PacketRouter router(graph, {}, {});
  EXPECT_EQ(graph.ports(0)[router.port(0, {0, 1, 0}, Time::zero())].peer, 3U);
  EXPECT_EQ(graph.ports(1)[router.port(1, {1, 0, 0}, Time::zero())].peer, 2U);
}

// Two ranks have a leaf with its hosts each, and a spine each.
TEST(PlaceNodes, PutsSwitchesWithTheirNeighbours) {
  const auto ranks = place_nodes(leaf_spine(), 2);
  for (const std::uint32_t node : {0U, 1U, 4U}) EXPECT_EQ(ranks[node], Rank(0)) << node;
  for (const std::uint32_t node : {2U, 3U, 5U}) EXPECT_EQ(ranks[node], Rank(1)) << node;
  EXPECT_NE(ranks[6], ranks[7]) << "spines are spread";
}

/// Runs flows on the leaves and spines.
FlowResults run(std::vector<FlowSpec> flows, PacketRules rules, EventOrder order = EventOrder::by_system) {
  FlowScenario scenario{leaf_spine(), std::move(rules), {}, shortest, std::move(flows)};
  const auto world = parallel::make_serial();
  return run_flows(scenario, *world, order);
}

// 10 packets over 4 links: the last one leaves after 10 and takes 3 more; its acknowledgement takes 4 links back.
TEST(RunFlows, TakesWhatPacketsTakeAtEachLink) {
  PacketRules rules;
  const auto results = run({{.source = 0, .destination = 2, .bytes = 10'000}}, rules);
  const Time packet = Time::from_ps(82'880);
  EXPECT_EQ(results.flows[0].received, packet * 13 + microsecond * 4);
  EXPECT_EQ(results.flows[0].acknowledged, packet * 13 + microsecond * 8 + Time::from_ps(4 * 3'840));
}

// Two flows of 5 packets leave one host in turn: the second ends one packet after the first.
TEST(RunFlows, AFlowOfTwoSharesItsPort) {
  PacketRules rules;
  rules.window.kind = PacketWindow::Kind::none;
  const auto results =
      run({{.source = 0, .destination = 1, .bytes = 5'000}, {.source = 0, .destination = 1, .bytes = 5'000}}, rules);
  EXPECT_EQ(results.flows[1].received - results.flows[0].received, Time::from_ps(82'880)) << "they send in turn";
}

// Three flows that begin at odd times, into one port with marks and DCQCN: both orders of equal times agree.
TEST(RunFlows, BothOrdersAgreeWhereNothingIsEqual) {
  PacketRules rules;
  rules.control = ControlName("dcqcn");
  rules.marks[100 * gbps] = {10'000, 10'000, 1};
  std::vector<FlowSpec> flows;
  for (std::uint32_t h = 1; h < 4; ++h)
    flows.push_back(
        {.source = h, .destination = 0, .bytes = 300'000, .start = Time::from_ps(17 * h * h * h), .ports = h});
  const auto by_system = run(flows, rules), by_scheduling = run(flows, rules, EventOrder::by_scheduling);
  std::uint64_t marks = 0;
  for (const PortRecord& port : by_system.ports) marks += port.marks;
  EXPECT_GT(marks, 0U);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    EXPECT_EQ(by_system.flows[i].received, by_scheduling.flows[i].received);
    EXPECT_EQ(by_system.flows[i].acknowledged, by_scheduling.flows[i].acknowledged);
  }
}

// Two flows of 40 packets from one leaf to the other. With turns at the leaf their links carry 40 each, and no packet
// waits at a spine.
TEST(RunFlows, TakesNextHopsInTurn) {
  PacketRules rules;
  rules.loss = PacketLoss::selective;
  rules.window.kind = PacketWindow::Kind::none;
  rules.routing = PacketRouting::round_robin;
  const auto results = run({{.source = 0, .destination = 2, .bytes = 40'000, .round_trip = Time::from_ns(8'320)},
                            {.source = 1, .destination = 3, .bytes = 40'000, .round_trip = Time::from_ns(8'320)}},
                           rules);
  for (const PortRecord& port : results.ports) {
    if (port.node != 4 || port.peer < 6) continue;
    EXPECT_EQ(port.packets, 40U);
  }
  EXPECT_LE(results.flows[0].received, Time::from_ps(82'880) * 44 + microsecond * 4);
}

// A flow from host 1 cannot wait for one that ends at host 2.
TEST(RunFlows, RefusesWhatCannotHappen) {
  EXPECT_THROW(
      run({{.source = 0, .destination = 2, .bytes = 1}, {.source = 1, .destination = 2, .bytes = 1, .after = {0}}}, {}),
      Error);
}

// Each control and each preset has its name.
TEST(Controls, AreAllInTheRegistry) {
  for (const char* name : {"none", "dcqcn", "dctcp", "hpcc", "timely", "swift", "nscc", "rccc"})
    EXPECT_TRUE(ControlName::find(name)) << name;
  for (const auto preset : PacketPresetName::all()) EXPECT_GT(preset->make().payload, 0U) << preset.name();
}

}  // namespace
}  // namespace orrery::network
