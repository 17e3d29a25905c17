// The registry of network models.
#include <gtest/gtest.h>

#include "dimension_of.hpp"
#include "orrery/base/error.hpp"
#include "orrery/network/model.hpp"

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

}  // namespace
}  // namespace orrery::network
