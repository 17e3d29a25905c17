#include "orrery/topology/partition.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "orrery/base/error.hpp"

namespace orrery::topology {
namespace {

class PartitionFile : public testing::Test {
 protected:
  std::filesystem::path write(std::string_view text) {
    path_ = std::filesystem::path(testing::TempDir()) / "orrery_partition_test.part";
    std::ofstream(path_) << text;
    return path_;
  }
  std::string refusal(std::string_view text, std::uint32_t num_npus, int num_ranks) {
    try {
      Partition::from_file(write(text), num_npus, num_ranks);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return error.what();
    }
    return "accepted";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::filesystem::path path_;
};

TEST(Partition, BlocksAreContiguousAndEven) {
  for (const std::uint32_t npus : {1U, 2U, 7U, 64U, 1000U}) {
    for (const int ranks : {1, 2, 3, 7, 9}) {
      const Partition partition = Partition::blocks(npus, ranks);
      EXPECT_EQ(partition.num_ranks(), ranks);
      std::uint32_t next = 0;
      for (int r = 0; r < ranks; ++r) {
        const auto hosted = partition.npus_of(Rank(r));
        EXPECT_GE(hosted.size(), npus / static_cast<std::uint32_t>(ranks));
        EXPECT_LE(hosted.size(), npus / static_cast<std::uint32_t>(ranks) + 1);
        for (const NpuId npu : hosted) {
          EXPECT_EQ(npu, NpuId(next++));
          EXPECT_EQ(partition.rank_of(npu), Rank(r));
        }
      }
      EXPECT_EQ(next, npus);
    }
  }
}

TEST_F(PartitionFile, OneRankPerLine) {
  const Partition partition = Partition::from_file(write("# comment\n1\n\n 0 \r\n% METIS comment\n1\n2"), 4, 3);
  EXPECT_EQ(partition.rank_of(NpuId(0)), Rank(1));
  EXPECT_EQ(partition.rank_of(NpuId(1)), Rank(0));
  ASSERT_EQ(partition.npus_of(Rank(1)).size(), 2U);
  EXPECT_EQ(partition.npus_of(Rank(1))[1], NpuId(2));
  EXPECT_EQ(partition.npus_of(Rank(2))[0], NpuId(3));
}

TEST_F(PartitionFile, RefusesWithFileAndLine) {
  EXPECT_NE(refusal("0\nx\n", 2, 1).find("partition_test.part:2: 'x' is not a whole number"), std::string::npos);
  EXPECT_NE(refusal("0 1\n", 2, 2).find(":1: '0 1' is not a whole number"), std::string::npos);
  EXPECT_NE(refusal("0\n2\n", 2, 2).find(":2: rank 2 does not exist; expected a rank, 0 to 1"), std::string::npos);
  EXPECT_NE(refusal("-1\n", 1, 2).find("rank -1 does not exist"), std::string::npos);
  EXPECT_NE(refusal("99999999999\n", 1, 2).find("does not exist"), std::string::npos);
  EXPECT_NE(refusal("0\n1\n0\n", 2, 2).find(":3: a rank too many"), std::string::npos);
  EXPECT_NE(refusal("0\n", 2, 2).find("ends after 1 ranks"), std::string::npos);
  try {
    Partition::from_file("no/such/file", 1, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot be opened"), std::string::npos);
  }
}

}  // namespace
}  // namespace orrery::topology
