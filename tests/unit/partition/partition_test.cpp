#include "orrery/partition/partition.hpp"

#include <gtest/gtest.h>

#include "orrery/base/error.hpp"

namespace orrery::partition {
namespace {

// Five NPUs are on three ranks, of which one hosts nothing. Each rank lists its NPUs in ascending order.
TEST(Partition, EachRankListsItsNpus) {
  const Partition partition({Rank(2), Rank(0), Rank(2), Rank(0), Rank(2)}, 3);
  EXPECT_EQ(partition.num_ranks(), 3);
  EXPECT_EQ(partition.rank_of(NpuId(3)), Rank(0));
  EXPECT_EQ(partition.ranks().size(), 5U);
  EXPECT_TRUE(partition.npus_of(Rank(1)).empty());
  ASSERT_EQ(partition.npus_of(Rank(2)).size(), 3U);
  EXPECT_EQ(partition.npus_of(Rank(2))[1], NpuId(2));
}

// A rank that does not exist is a fault of the program, not of the input.
TEST(Partition, RefusesRanksThatDoNotExist) {
  EXPECT_THROW(Partition({Rank(0), Rank(2)}, 2), Error);
  EXPECT_THROW(Partition({Rank(-1)}, 2), Error);
  EXPECT_THROW(Partition({}, 0), Error);
}

}  // namespace
}  // namespace orrery::partition
