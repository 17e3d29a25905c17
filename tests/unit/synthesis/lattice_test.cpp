#include "lattice.hpp"

#include <gtest/gtest.h>

namespace orrery::synthesis {
namespace {

using Numbers = std::vector<std::uint32_t>;

/// Returns `count` numbers from `first` on, `stride` apart.
Numbers row(std::uint32_t first, std::uint32_t stride, std::uint32_t count) {
  Numbers numbers;
  for (std::uint32_t i = 0; i < count; ++i) numbers.push_back(first + i * stride);
  return numbers;
}

Numbers sizes(const std::vector<Axis>& axes) {
  Numbers result;
  for (const Axis& axis : axes) result.push_back(axis.size);
  return result;
}

std::vector<NpuId> npus(const Numbers& numbers) {
  std::vector<NpuId> result;
  for (const auto number : numbers) result.emplace_back(number);
  return result;
}

/// 64 NPUs with groups of stride 1 and 4 and messages over a distance of 16 lie on three axes of 4; NPUs that share
/// nothing lie on one axis.
TEST(Lattice, FindsAxesOfGroupsAndMessages) {
  EXPECT_EQ(sizes(find_axes(64, {{row(0, 1, 4), 10}, {row(0, 4, 4), 5}}, {{16, 3}})), (Numbers{4, 4, 4}));
  EXPECT_EQ(sizes(find_axes(64, {}, {})), (Numbers{64}));
  EXPECT_EQ(sizes(find_axes(1, {}, {})), (Numbers{1}));
}

TEST(Lattice, AGroupOverTwoAxesIsTakenApart) {
  // Strides 1 and 8, two members each.
  EXPECT_EQ(sizes(find_axes(16, {{Numbers{0, 1, 8, 9}, 1}}, {})), (Numbers{2, 4, 2}));
}

TEST(Lattice, WhatContradictsHeavierGroupsIsLeftOut) {
  // The first and the last stage of four: 48 apart, which is no product of sizes.
  EXPECT_EQ(sizes(find_axes(64, {{row(0, 1, 16), 10}, {Numbers{0, 48}, 1}}, {{16, 5}})), (Numbers{16, 4}));
}

/// On 4 x 4 NPUs the rows look alike from their members, and rows and columns do not. A group of the first and the last
/// coordinate stays one on a longer axis. Three NPUs that are no rows by columns are no product.
TEST(Lattice, SeesGroupsFromTheirMembers) {
  const std::vector<Axis> axes{{.size = 4, .stride = 1}, {.size = 4, .stride = 4}};
  const auto shape = [&](std::uint32_t npu, const Numbers& members) {
    return shape_of(axes, npu, coordinates_of_group(axes, npus(members)));
  };
  EXPECT_EQ(shape(5, row(4, 1, 4)), shape(10, row(8, 1, 4)));
  EXPECT_NE(shape(5, row(4, 1, 4)), shape(5, row(1, 4, 4)));
  // First and last of the outer axis, from both of them.
  const GroupShape ends = shape(2, {2, 14});
  EXPECT_EQ(ends, shape(14, {2, 14}));
  EXPECT_EQ(ends.extents[1].positions, (std::vector<std::int32_t>{0, -1}));
  EXPECT_EQ(coordinates_of(ends.extents[1], 0, 8), (Numbers{0, 7}));
  EXPECT_FALSE(coordinates_of_group(axes, npus({0, 1, 5})).is_product);
}

/// On 2 x 4 NPUs the offset to a peer is the shorter way round each axis, and of two that are as short the one that
/// does not wrap.
TEST(Lattice, OffsetsAreTheShortestWay) {
  const std::vector<Axis> axes{{.size = 2, .stride = 1}, {.size = 4, .stride = 2}};
  EXPECT_EQ(offsets_to(axes, 0, 2), (Offsets{0, 1}));
  EXPECT_EQ(offsets_to(axes, 6, 0), (Offsets{0, 1}));  // round
  EXPECT_EQ(offsets_to(axes, 3, 1), (Offsets{0, -1}));
  EXPECT_EQ(offsets_to(axes, 1, 0), (Offsets{-1, 0}));
}

}  // namespace
}  // namespace orrery::synthesis
