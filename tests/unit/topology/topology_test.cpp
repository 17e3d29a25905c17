#include "orrery/topology/topology.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "dimension_of.hpp"
#include "orrery/base/error.hpp"

namespace orrery::topology {
namespace {

std::string refusal(std::vector<Dimension> dimensions) {
  try {
    Topology(std::move(dimensions));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "accepted";
}

// NPU 17 of 4 x 3 x 2 is 1 + 4 * (1 + 3 * 1): coordinates (1, 1, 1).
TEST(Topology, CoordinatesAreDigitsDimensionZeroFastest) {
  const Topology topology(
      {dimension_of(Shape::ring, 4), dimension_of(Shape::fully_connected, 3), dimension_of(Shape::switched, 2)});
  EXPECT_EQ(topology.num_npus(), 24U);
  EXPECT_EQ(topology.coordinate(NpuId(17), 0), 1U);
  EXPECT_EQ(topology.coordinate(NpuId(17), 1), 1U);
  EXPECT_EQ(topology.coordinate(NpuId(17), 2), 1U);
  EXPECT_EQ(topology.stride(2), 12U);
}

// Ring of 8: the shorter way round; FullyConnected: one link; Switch: up and down; Mesh: along the row.
TEST(Topology, Hops) {
  const Topology topology({dimension_of(Shape::ring, 8), dimension_of(Shape::fully_connected, 8),
                           dimension_of(Shape::switched, 8), dimension_of(Shape::mesh, 8)});
  for (const auto& [distance, hops] : {std::pair(0U, 0U), {1U, 1U}, {4U, 4U}, {5U, 3U}, {7U, 1U}, {8U, 0U}})
    EXPECT_EQ(topology.hops(0, distance), hops) << distance;
  EXPECT_EQ(topology.hops(1, 5), 1U);
  EXPECT_EQ(topology.hops(2, 5), 2U);
  EXPECT_EQ(topology.hops(2, 0), 0U);
  EXPECT_EQ(topology.hops(3, 7), 7U);
}

// Without links of its own a message counts as one between the places that are farthest apart; nothing is faster than
// through one switch.
TEST(Topology, HopsOfFatTreeAndDragonfly) {
  Dimension tree = dimension_of(Shape::fat_tree, 16);
  tree.ports = 4;
  EXPECT_EQ(hops(tree, 1), 6U);
  tree.size = 4;
  EXPECT_EQ(hops(tree, 3), 4U);
  Dimension fly = dimension_of(Shape::dragonfly, 12);
  fly.routers = 3;
  fly.npus_per_router = fly.global_links = 2;
  EXPECT_EQ(hops(fly, 1), 5U);
  fly.size = 6;
  EXPECT_EQ(hops(fly, 5), 3U);
  EXPECT_EQ(directed_links(fly), 6U);
}

TEST(Topology, SizesOfFatTreeAndDragonfly) {
  Dimension tree = dimension_of(Shape::fat_tree, 20);
  tree.ports = 4;
  EXPECT_NE(
      refusal({tree}).find("dimension 0 (FatTree): its size is 20; expected a multiple of 4 up to 16: 1 to 4 pods "
                           "of 4 NPUs on 4-port switches"),
      std::string::npos)
      << refusal({tree});
  tree.size = 6;
  EXPECT_NE(refusal({tree}).find("its size is 6; expected a multiple of 4"), std::string::npos);
  tree.size = 8;
  EXPECT_EQ(refusal({tree}), "accepted");
  for (const double factor : {3.0, 1.5, 4.0}) {
    tree.oversubscription = factor;
    EXPECT_NE(refusal({tree}).find("a divisor of half of the 4 ports"), std::string::npos) << factor;
  }
  for (const std::uint32_t ports : {0U, 5U, 5000U}) {
    tree.ports = ports;
    EXPECT_NE(refusal({tree}).find("expected an even number, 2 to 4096"), std::string::npos) << ports;
  }
  Dimension fly = dimension_of(Shape::dragonfly, 80);
  fly.routers = 4;
  fly.npus_per_router = fly.global_links = 2;
  EXPECT_NE(refusal({fly}).find("dimension 0 (Dragonfly): its size is 80; expected a multiple of 8 up to 72: 1 to 9 "
                                "groups of 4 routers with 2 NPUs each"),
            std::string::npos)
      << refusal({fly});
  fly.size = 72;
  EXPECT_EQ(refusal({fly}), "accepted");
  fly.oversubscription = 2;
  EXPECT_NE(refusal({fly}).find("only a Switch or a FatTree may be oversubscribed"), std::string::npos);
  fly.oversubscription = 1;
  fly.global_links = 0;
  EXPECT_NE(refusal({fly}).find("4 routers, its routers 2 NPUs and 0 global links; expected 1 to 4096"),
            std::string::npos);
}

TEST(Topology, RefusesByDimension) {
  EXPECT_NE(refusal({}).find("no dimension"), std::string::npos);
  EXPECT_NE(refusal(std::vector<Dimension>(65, dimension_of(Shape::ring, 1))).find("65 dimensions"), std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape::ring, 2), dimension_of(Shape::switched, 0)})
                .find("dimension 1 (Switch): its size is 0"),
            std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape::ring, 2, 0)}).find("dimension 0 (Ring): its bandwidth is 0"),
            std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape::ring, 2, std::numeric_limits<double>::infinity())}).find("bandwidth"),
            std::string::npos);
  Dimension dimension = dimension_of(Shape::ring, 2);
  dimension.oversubscription = 2;
  EXPECT_NE(refusal({dimension})
                .find("dimension 0 (Ring): its oversubscription is 2; expected 1: only a Switch or a FatTree"),
            std::string::npos);
  dimension = dimension_of(Shape::switched, 2);
  for (const double factor : {0.5, 1e7, std::numeric_limits<double>::quiet_NaN()}) {
    dimension.oversubscription = factor;
    EXPECT_NE(refusal({dimension}).find("expected 1 (none) to 1e6"), std::string::npos) << factor;
  }
  dimension.oversubscription = 2;
  dimension.in_switch_operations = 3;
  EXPECT_NE(refusal({dimension}).find("it offers 3 in-switch operations and is oversubscribed by 2"),
            std::string::npos);
  dimension = dimension_of(Shape::switched, 2, 8e9);
  dimension.links = 2;
  EXPECT_NE(refusal({dimension}).find("its 2 links side by side have"), std::string::npos);
  dimension.links = 0;
  EXPECT_NE(refusal({dimension}).find("it has 0 links side by side; expected 1 to 4096"), std::string::npos);
  dimension = dimension_of(Shape::switched, 2, 2e-9);
  dimension.oversubscription = 3;
  EXPECT_NE(refusal({dimension}).find("an oversubscription of 3 leaves an NPU"), std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape::ring, 2, 10, -1)}).find("its latency is -1 ns"), std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape::ring, 2, 10, std::numeric_limits<double>::quiet_NaN())}).find("latency"),
            std::string::npos);
  EXPECT_NE(
      refusal({dimension_of(Shape::ring, 70'000), dimension_of(Shape::ring, 70'000)}).find("more than 16777216 NPUs"),
      std::string::npos);
}

}  // namespace
}  // namespace orrery::topology
