#include "orrery/network/delay_model.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "dimension_of.hpp"

namespace orrery::network {
namespace {

using topology::Dimension;
using topology::dimension_of;
using topology::Shape;
using topology::Topology;

constexpr Rules astra_sim{Rounding::down_to_ns, false};

// 2 hops * 77.5 ns + 1000 B / 30 B/ns = 155 + 33.333... ns: rounded up to ps, or the sum cut to whole ns.
TEST(DelayModel, LinkDelay) {
  EXPECT_EQ(DelayModel(Topology({dimension_of(Shape("Ring"), 8, 30, 77.5)})).link_delay(0, 2, Bytes(1000)),
            Time::from_ps(155'000 + 33'334));
  EXPECT_EQ(DelayModel(Topology({dimension_of(Shape("Ring"), 8, 30, 77.5)}), astra_sim).link_delay(0, 2, Bytes(1000)),
            Time::from_ns(188));
}

// From (0, 0) to (2, 1): 2 hops in the ring, 2 through the switch. Physical: 2*100 + 1000/10 and then 2*500 + 1000/20
// ns. astra-sim: the lowest differing dimension only.
TEST(DelayModel, DelayAcrossSeveralDimensions) {
  const std::vector<Dimension> dimensions{dimension_of(Shape("Ring"), 4), dimension_of(Shape("Switch"), 2, 20, 500)};
  const DelayModel physical{Topology(dimensions)};
  EXPECT_EQ(physical.delay(NpuId(0), NpuId(6), Bytes(1000)), Time::from_ns(300 + 1050));
  EXPECT_EQ(physical.delay(NpuId(6), NpuId(0), Bytes(1000)), Time::from_ns(300 + 1050));
  const DelayModel astra(Topology(dimensions), astra_sim);
  EXPECT_EQ(astra.delay(NpuId(0), NpuId(6), Bytes(1000)), Time::from_ns(300));
  EXPECT_EQ(astra.delay(NpuId(0), NpuId(4), Bytes(1000)), Time::from_ns(1050));
}

// The two ends of a row of 5 are 4 hops apart, both ways; it has 8 links.
TEST(DelayModel, AMeshIsOpen) {
  const DelayModel delays{Topology({dimension_of(Shape("Mesh"), 5)})};
  EXPECT_EQ(delays.delay(NpuId(0), NpuId(4), Bytes(1000)), Time::from_ns(500));
  EXPECT_EQ(delays.delay(NpuId(4), NpuId(0), Bytes(1000)), Time::from_ns(500));
  EXPECT_EQ(delays.delay(NpuId(3), NpuId(1), Bytes(1000)), Time::from_ns(300));
  EXPECT_EQ(directed_links(delays.topology().dimension(0)), 8U);
}

// Two links of 10 B/ns side by side: 1000 B take 50 ns. Half of that through a Switch oversubscribed by 2; a port at
// 3/4 of its bandwidth changes nothing there, one at 1/4 does.
TEST(DelayModel, LinksSideBySideAndOversubscription) {
  Dimension dimension = dimension_of(Shape("Switch"), 4);
  dimension.links = 2;
  EXPECT_EQ(DelayModel(Topology({dimension})).delay(NpuId(0), NpuId(1), Bytes(1000)), Time::from_ns(250));
  EXPECT_EQ(directed_links(dimension), 8U);
  dimension.oversubscription = 2;
  const DelayModel delays{Topology({dimension})};
  EXPECT_EQ(delays.delay(NpuId(0), NpuId(1), Bytes(1000)), Time::from_ns(300));
  EXPECT_EQ(delays.link_delay(0, 2, Bytes(1000), {0.75, 1}), Time::from_ns(300));
  EXPECT_EQ(delays.link_delay(0, 2, Bytes(1000), {0.25, 1}), Time::from_ns(400));
}

// A message of no latency takes a tick: 1 ns under `astra-sim` rules, 1 ps under physical ones.
TEST(DelayModel, DelayIsATickAtLeast) {
  EXPECT_EQ(
      DelayModel(Topology({dimension_of(Shape("Ring"), 2, 1000, 0)}), astra_sim).delay(NpuId(0), NpuId(1), Bytes(1)),
      Time::from_ns(1));
  EXPECT_EQ(DelayModel(Topology({dimension_of(Shape("Ring"), 2, 1000, 0)})).delay(NpuId(0), NpuId(1), Bytes(0)),
            Time::from_ps(1));
}

// The switch needs two hops of 40 ns, the ring one of 100 ns; a dimension of one NPU joins nobody.
TEST(DelayModel, MinimumDelay) {
  const DelayModel delays{Topology({dimension_of(Shape("Ring"), 4), dimension_of(Shape("Switch"), 2, 10, 40),
                                    dimension_of(Shape("Ring"), 1, 10, 1)})};
  EXPECT_EQ(delays.minimum_delay(), Time::from_ns(80));
  EXPECT_EQ(DelayModel(Topology({dimension_of(Shape("Ring"), 1)})).minimum_delay(), Time::from_ps(1));
}

// Nothing in a FatTree is faster than through one switch.
TEST(DelayModel, MinimumDelayOfAFatTree) {
  Dimension tree = dimension_of(Shape("FatTree"), 16);
  tree.parameters = {{"ports", 4}};
  EXPECT_EQ(DelayModel(Topology({tree})).minimum_delay(), Time::from_ns(200));
}

}  // namespace
}  // namespace orrery::network
