// The registry of network models.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "dimension_of.hpp"
#include "orrery/base/error.hpp"
#include "orrery/network/model.hpp"
#include "orrery/network/packet_graph.hpp"

namespace orrery::network {
namespace {

using topology::dimension_of;
using topology::Shape;
using topology::Topology;

// The default model computes delays and has no logical processes. A model that simulates links has some, and tells the
// least time in which one of them hands a message on.
TEST(NetworkModels, MakeWhatTheOptionsChoose) {
  const Topology topology({dimension_of(Shape("Ring"), 4)});
  Options options;
  EXPECT_EQ(name(options.model), "congestion-unaware");
  for (const ModelName model : ModelName::all()) {
    options.model = model;
    EXPECT_FALSE(model->help.empty());
    const auto network = make_network(topology, options);
    ASSERT_EQ(network != nullptr, model->simulates_links()) << model.name();
    if (network == nullptr) continue;
    EXPECT_GT(network->num_processes(), 0U);
    EXPECT_GT(network->least_relay_delay(), Time::zero());
  }
}

// The links of a Ring of 4 have a latency of 100 ns, and each NPU has two.
TEST(NetworkModels, TheCongestionAwareNetworkHasAProcessForEachLink) {
  const Topology topology({dimension_of(Shape("Ring"), 4)});
  Options options;
  options.model = ModelName("congestion-aware");
  const auto network = make_network(topology, options);
  EXPECT_EQ(network->num_processes(), 8U);
  EXPECT_EQ(network->least_relay_delay(), Time::from_ns(100));
}

Time between_ranks(const SimulatedNetwork& network, const std::vector<int>& ranks) {
  const std::vector<Rank> of_npu(ranks.begin(), ranks.end());
  return network.relay_delay_between_ranks({Rank(0), of_npu, {}});
}

// Pairs of NPUs with links of 50 ns, and two such pairs with links of 100 ns between them. Ranks that have whole pairs
// are 100 ns apart, and those that part pairs 50 ns. A message between pairs also ends behind a link of 100 ns.
TEST(NetworkModels, OnlyLinksBetweenRanksDelayWhatPassesBetweenThem) {
  topology::Dimension near = dimension_of(Shape("Ring"), 2);
  near.latency_ns = 50;
  Options options;
  options.model = ModelName("congestion-aware");
  const Topology topology({near, dimension_of(Shape("Ring"), 2)});
  const auto network = make_network(topology, options);
  EXPECT_EQ(network->least_relay_delay(), Time::from_ns(50));
  EXPECT_EQ(between_ranks(*network, {0, 0, 1, 1}), Time::from_ns(100));
  EXPECT_EQ(between_ranks(*network, {0, 1, 0, 1}), Time::from_ns(50));
  EXPECT_EQ(between_ranks(*network, {0, 0, 0, 0}), Time::max());
}

// Two servers, each with a switch of its own at 50 ns, and a leaf that all NPUs have a link of 100 ns to. What a leaf
// passes on may come from any rank; what a server's switch passes on comes from the server. The shortest packet is a
// pause frame of 31 B.
TEST(NetworkModels, SwitchesInsideARankDoNotCount) {
  const auto given = std::make_shared<GivenGraph>();
  for (int h = 0; h < 4; ++h) given->graph.add_host();
  for (int s = 0; s < 3; ++s) given->graph.add_switch({});
  for (std::uint32_t h = 0; h < 4; ++h) {
    given->graph.add_link({h, 4 + h / 2, 800'000'000'000, Time::from_ns(50)});
    given->graph.add_link({h, 6, 800'000'000'000, Time::from_ns(100)});
  }
  Options options;
  options.graph = given;
  const Topology topology({dimension_of(Shape("Switch"), 4)});
  for (const auto& [model, shortest] :
       {std::pair("congestion-aware", Time()), std::pair("packet", Time::from_ps(310))}) {
    options.model = ModelName(model);
    const auto network = make_network(topology, options);
    EXPECT_EQ(between_ranks(*network, {0, 0, 1, 1}), Time::from_ns(100) + shortest) << model;
    EXPECT_EQ(between_ranks(*network, {0, 1, 0, 1}), Time::from_ns(50) + shortest) << model;
    EXPECT_EQ(between_ranks(*network, {0, 0, 0, 0}), Time::max()) << model;
  }
}

}  // namespace
}  // namespace orrery::network
