#include "orrery/topology/topology.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "dimension_of.hpp"
#include "orrery/base/error.hpp"
#include "tiered_shapes.hpp"

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

// A Ring of 4, a FullyConnected dimension of 3 and a Switch of 2. NPU 17 is 1 + 4 * (1 + 3 * 1), so its coordinates are
// (1, 1, 1).
TEST(Topology, CoordinatesAreDigitsDimensionZeroFastest) {
  const Topology topology(
      {dimension_of(Shape("Ring"), 4), dimension_of(Shape("FullyConnected"), 3), dimension_of(Shape("Switch"), 2)});
  EXPECT_EQ(topology.num_npus(), 24U);
  EXPECT_EQ(topology.coordinate(NpuId(17), 0), 1U);
  EXPECT_EQ(topology.coordinate(NpuId(17), 1), 1U);
  EXPECT_EQ(topology.coordinate(NpuId(17), 2), 1U);
  EXPECT_EQ(topology.stride(2), 12U);
}

// Messages in a Ring of 8 go the shorter way round, in a FullyConnected dimension over one link, in a Switch up and
// down, and in a Mesh along the row.
TEST(Topology, Hops) {
  const Topology topology({dimension_of(Shape("Ring"), 8), dimension_of(Shape("FullyConnected"), 8),
                           dimension_of(Shape("Switch"), 8), dimension_of(Shape("Mesh"), 8)});
  for (const auto& [to, hops] : {std::pair(0U, 0U), {1U, 1U}, {4U, 4U}, {5U, 3U}, {7U, 1U}}) {
    EXPECT_EQ(topology.hops(0, 0, to), hops) << to;
    EXPECT_EQ(topology.hops(0, to, 0), hops) << to;
  }
  EXPECT_EQ(topology.hops(1, 2, 7), 1U);
  EXPECT_EQ(topology.hops(2, 7, 2), 2U);
  EXPECT_EQ(topology.hops(2, 3, 3), 0U);
  EXPECT_EQ(topology.hops(3, 7, 0), 7U);
}

// In a FatTree and in a Dragonfly pairs have no delay of their own. There any message counts as one between the
// positions that are farthest apart: between pods or groups if there are several, else within one.
TEST(Topology, HopsOfFatTreeAndDragonfly) {
  EXPECT_EQ(Topology({fat_tree(4, 16)}).hops(0, 0, 1), 6U);
  EXPECT_EQ(Topology({fat_tree(4, 4)}).hops(0, 0, 3), 4U);
  EXPECT_EQ(Topology({dragonfly(3, 2, 2, 12)}).hops(0, 0, 1), 5U);
  EXPECT_EQ(Topology({dragonfly(3, 2, 2, 6)}).hops(0, 0, 5), 3U);
  EXPECT_EQ(directed_links(dragonfly(3, 2, 2, 6)), 6U);
}

// A FatTree has whole pods of (ports / 2)^2 NPUs, a Dragonfly whole groups of routers. What does not fit is refused
// with the sizes that do.
TEST(Topology, SizesOfFatTreeAndDragonfly) {
  EXPECT_NE(refusal({fat_tree(4, 20)})
                .find("dimension 0 (FatTree): its size is 20; expected a multiple of 4 up to 16: 1 to 4 pods of 4 NPUs "
                      "on 4-port switches"),
            std::string::npos)
      << refusal({fat_tree(4, 20)});
  EXPECT_NE(refusal({fat_tree(4, 6)}).find("its size is 6; expected a multiple of 4"), std::string::npos);
  Dimension tree = fat_tree(4, 8);
  EXPECT_EQ(refusal({tree}), "accepted");
  for (const double factor : {3.0, 1.5, 4.0}) {
    tree.oversubscription = factor;
    EXPECT_NE(refusal({tree}).find("a divisor of half of the 4 ports"), std::string::npos) << factor;
  }
  for (const std::uint32_t ports : {0U, 5U, 5000U})
    EXPECT_NE(refusal({fat_tree(ports, 8)}).find("expected an even number, 2 to 4096"), std::string::npos) << ports;
  EXPECT_NE(refusal({dragonfly(4, 2, 2, 80)})
                .find("dimension 0 (Dragonfly): its size is 80; expected a multiple of 8 up to 72: 1 to 9 groups of 4 "
                      "routers with 2 NPUs each"),
            std::string::npos)
      << refusal({dragonfly(4, 2, 2, 80)});
  Dimension fly = dragonfly(4, 2, 2, 72);
  EXPECT_EQ(refusal({fly}), "accepted");
  fly.oversubscription = 2;
  EXPECT_NE(refusal({fly}).find("only a Switch or FatTree may be oversubscribed"), std::string::npos);
  EXPECT_NE(
      refusal({dragonfly(4, 2, 0, 72)}).find("4 routers, its routers 2 NPUs and 0 global links; expected 1 to 4096"),
      std::string::npos);
}

// Each fault of a dimension is refused with the number and the shape of the dimension.
TEST(Topology, RefusesByDimension) {
  EXPECT_NE(refusal({}).find("no dimension"), std::string::npos);
  EXPECT_NE(refusal(std::vector<Dimension>(65, dimension_of(Shape("Ring"), 1))).find("65 dimensions"),
            std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape("Ring"), 2), dimension_of(Shape("Switch"), 0)})
                .find("dimension 1 (Switch): its size is 0"),
            std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape("Ring"), 2, 0)}).find("dimension 0 (Ring): its bandwidth is 0"),
            std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape("Ring"), 2, std::numeric_limits<double>::infinity())}).find("bandwidth"),
            std::string::npos);
  Dimension dimension = dimension_of(Shape("Ring"), 2);
  dimension.oversubscription = 2;
  EXPECT_NE(
      refusal({dimension}).find("dimension 0 (Ring): its oversubscription is 2; expected 1: only a Switch or FatTree"),
      std::string::npos);
  dimension = dimension_of(Shape("Switch"), 2);
  for (const double factor : {0.5, 1e7, std::numeric_limits<double>::quiet_NaN()}) {
    dimension.oversubscription = factor;
    EXPECT_NE(refusal({dimension}).find("expected 1 (none) to 1e6"), std::string::npos) << factor;
  }
  dimension.oversubscription = 2;
  dimension.in_switch_operations = 3;
  EXPECT_NE(refusal({dimension}).find("it offers 3 in-switch operations and is oversubscribed by 2"),
            std::string::npos);
  dimension = dimension_of(Shape("Switch"), 2, 8e9);
  dimension.links = 2;
  EXPECT_NE(refusal({dimension}).find("its 2 links side by side have"), std::string::npos);
  dimension.links = 0;
  EXPECT_NE(refusal({dimension}).find("it has 0 links side by side; expected 1 to 4096"), std::string::npos);
  dimension = dimension_of(Shape("Switch"), 2, 2e-9);
  dimension.oversubscription = 3;
  EXPECT_NE(refusal({dimension}).find("an oversubscription of 3 leaves an NPU"), std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape("Ring"), 2, 10, -1)}).find("its latency is -1 ns"), std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape("Ring"), 2, 10, std::numeric_limits<double>::quiet_NaN())}).find("latency"),
            std::string::npos);
  EXPECT_NE(refusal({dimension_of(Shape("Ring"), 70'000), dimension_of(Shape("Ring"), 70'000)})
                .find("more than 16777216 NPUs"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::topology
