#include "orrery/partition/partition.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "orrery/base/error.hpp"

namespace orrery::partition {
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
  EXPECT_NE(refusal("0\n", 2, 2).find("ends after 1 rank;"), std::string::npos);
  try {
    Partition::from_file("no/such/file", 1, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("there is no such file"), std::string::npos);
  }
}

/// 3 x 2 x 5 NPUs.
topology::Topology stack() {
  const auto dimension = [](std::uint32_t size) {
    return topology::Dimension{topology::Shape("Ring"), size, Bandwidth::from_bytes_per_ns(50), 500};
  };
  return topology::Topology({dimension(3), dimension(2), dimension(5)});
}

TEST(Partition, RoundRobinDealsOneByOne) {
  const Partition partition = Partition::round_robin(7, 3);
  EXPECT_EQ(partition.num_ranks(), 3);
  for (std::uint32_t npu = 0; npu < 7; ++npu) EXPECT_EQ(partition.rank_of(NpuId(npu)), Rank(static_cast<int>(npu % 3)));
  EXPECT_EQ(partition.npus_of(Rank(0)).size(), 3U);
}

TEST(Partition, LinesStayTogether) {
  const topology::Topology topology = stack();
  for (std::uint32_t last = 0; last < topology.num_dimensions(); ++last)
    for (const int ranks : {1, 2, 3, 4, 7, 40}) {
      const Partition partition = Partition::lines(topology, last, ranks);
      int previous = 0;
      for (std::uint32_t a = 0; a < topology.num_npus(); ++a) {
        EXPECT_GE(partition.rank_of(NpuId(a)).value(), previous) << "contiguous";
        previous = partition.rank_of(NpuId(a)).value();
        for (std::uint32_t b = 0; b < a; ++b) {
          bool together = true;
          for (std::uint32_t d = last + 1; d < topology.num_dimensions(); ++d)
            together = together && topology.coordinate(NpuId(a), d) == topology.coordinate(NpuId(b), d);
          if (together) {
            EXPECT_EQ(partition.rank_of(NpuId(a)), partition.rank_of(NpuId(b))) << a << " " << b;
          }
        }
      }
      const std::uint32_t run = topology.stride(last) * topology.dimension(last).size;
      const auto runs = static_cast<std::size_t>(topology.num_npus() / run);
      for (int r = 0; r < ranks; ++r) {
        const std::size_t mine = partition.npus_of(Rank(r)).size() / run;
        EXPECT_GE(mine, runs / static_cast<std::size_t>(ranks)) << "balanced";
        EXPECT_LE(mine, runs / static_cast<std::size_t>(ranks) + 1) << "balanced";
      }
    }
}

TEST(Partition, MakesWhatTheOptionsName) {
  const topology::Topology topology = stack();
  const auto ranks = [&](const PartitionOptions& options) {
    const Partition partition = Partition::make(options, topology, 4);
    std::vector<Rank> result;
    for (std::uint32_t i = 0; i < topology.num_npus(); ++i) result.push_back(partition.rank_of(NpuId(i)));
    return result;
  };
  EXPECT_EQ(ranks({})[29], Rank(3));
  EXPECT_EQ(ranks({.strategy = Strategy::round_robin})[5], Rank(1));
  EXPECT_EQ(ranks({.strategy = Strategy::dimension, .dimension = 2}), std::vector<Rank>(30, Rank(0)));
  EXPECT_THROW(ranks({.strategy = Strategy::metis}), Error);
  EXPECT_THROW(Partition::from_ranks({Rank(0), Rank(2)}, 2), Error);
}

TEST(Partition, NamesAndLimitsOfOptions) {
  EXPECT_EQ(name(PartitionOptions{}), "block");
  EXPECT_EQ(name({.strategy = Strategy::round_robin}), "round-robin");
  EXPECT_EQ(name({.strategy = Strategy::dimension, .dimension = 2}), "dimension:2");
  EXPECT_EQ(name({.strategy = Strategy::metis}), "metis");
  EXPECT_EQ(name({.strategy = Strategy::file, .file = "a/map"}), "a/map");
  const topology::Topology topology = stack();
  EXPECT_NO_THROW((PartitionOptions{.strategy = Strategy::dimension, .dimension = 2}.validate(topology, {})));
  EXPECT_THROW((PartitionOptions{.strategy = Strategy::dimension, .dimension = 3}.validate(topology, {})), Error);
}

}  // namespace
}  // namespace orrery::partition
