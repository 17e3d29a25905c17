#include "orrery/partition/strategy.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "dimension_of.hpp"
#include "orrery/partition/communication_graph.hpp"
#include "temporary_folder.hpp"

namespace orrery::partition {
namespace {

/// A ring of this many NPUs.
topology::Topology ring(std::uint32_t npus) {
  return topology::Topology({topology::dimension_of(topology::Shape("Ring"), npus)});
}

/// 3 x 2 x 5 NPUs.
topology::Topology stack() {
  return topology::Topology({topology::dimension_of(topology::Shape("Ring"), 3),
                             topology::dimension_of(topology::Shape("Ring"), 2),
                             topology::dimension_of(topology::Shape("Ring"), 5)});
}

Partition made(const std::string& text, const topology::Topology& topology, int num_ranks) {
  return PartitionOptions(text, {}).make({topology, num_ranks});
}

// 1 to 1000 NPUs are on 1 to 9 ranks. `block` gives each rank consecutive NPUs, and numbers that differ by at most one.
TEST(Block, IsContiguousAndEven) {
  for (const std::uint32_t npus : {1U, 2U, 7U, 64U, 1000U}) {
    for (const int ranks : {1, 2, 3, 7, 9}) {
      const Partition partition = made("block", ring(npus), ranks);
      EXPECT_EQ(partition.num_ranks(), ranks);
      std::uint32_t next = 0;
      for (int r = 0; r < ranks; ++r) {
        const auto hosted = partition.npus_of(Rank(r));
        EXPECT_GE(hosted.size(), npus / static_cast<std::uint32_t>(ranks));
        EXPECT_LE(hosted.size(), npus / static_cast<std::uint32_t>(ranks) + 1);
        for (const NpuId npu : hosted) EXPECT_EQ(npu, NpuId(next++));
      }
      EXPECT_EQ(next, npus);
    }
  }
}

/// NPUs in rings of these sizes, with these latencies in ns.
topology::Topology rings(std::vector<std::uint32_t> sizes, std::vector<double> latencies) {
  std::vector<topology::Dimension> dimensions;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    dimensions.push_back(topology::dimension_of(topology::Shape("Ring"), sizes[d]));
    dimensions.back().latency_ns = latencies[d];
  }
  return topology::Topology(dimensions);
}

// Links of 1 or 19 ns, inside or outside, stay within ranks if there are as many sets as ranks; links of 20 ns need
// not.
TEST(Block, KeepsShortLinksWithinRanks) {
  const auto rank_of = [](const topology::Topology& topology, int num_ranks) {
    const Partition partition = made("block", topology, num_ranks);
    std::vector<int> ranks;
    for (const Rank rank : partition.ranks()) ranks.push_back(rank.value());
    return ranks;
  };
  EXPECT_EQ(rank_of(rings({3, 3}, {1, 500}), 2), (std::vector{0, 0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(rank_of(rings({4, 2}, {500, 19}), 2), (std::vector{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(rank_of(rings({4, 2}, {500, 20}), 2), (std::vector{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(rank_of(rings({2, 2, 2}, {0, 500, 1}), 2), (std::vector{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(rank_of(rings({4, 2}, {1, 500}), 3), (std::vector{0, 0, 0, 1, 1, 1, 2, 2}));  // two sets for three ranks
  EXPECT_EQ(rank_of(rings({4}, {1}), 2), (std::vector{0, 0, 1, 1}));
}

// Seven NPUs are on three ranks. `round-robin` gives NPU i to rank i mod 3.
TEST(RoundRobin, DealsOneByOne) {
  const Partition partition = made("round-robin", ring(7), 3);
  EXPECT_EQ(partition.num_ranks(), 3);
  for (std::uint32_t npu = 0; npu < 7; ++npu) EXPECT_EQ(partition.rank_of(NpuId(npu)), Rank(static_cast<int>(npu % 3)));
  EXPECT_EQ(partition.npus_of(Rank(0)).size(), 3U);
}

// 3 x 2 x 5 NPUs are on 1 to 40 ranks. `dimension:d` keeps NPUs together that differ in dimensions 0 to d only, and the
// numbers of these sets on two ranks differ by at most one.
TEST(ByDimension, KeepsSetsTogether) {
  const topology::Topology topology = stack();
  for (std::uint32_t last = 0; last < topology.num_dimensions(); ++last)
    for (const int ranks : {1, 2, 3, 4, 7, 40}) {
      const Partition partition = made(fmt::format("dimension:{}", last), topology, ranks);
      const std::uint32_t size = topology.stride(last) * topology.dimension(last).size;
      for (std::uint32_t a = 0; a < topology.num_npus(); ++a)
        EXPECT_EQ(partition.rank_of(NpuId(a)), partition.rank_of(NpuId(a / size * size))) << last << " " << a;
      for (std::uint32_t a = 1; a < topology.num_npus(); ++a)
        EXPECT_GE(partition.rank_of(NpuId(a)), partition.rank_of(NpuId(a - 1)));
      const auto sets = static_cast<std::size_t>(topology.num_npus() / size);
      for (int r = 0; r < ranks; ++r) {
        const std::size_t mine = partition.npus_of(Rank(r)).size() / size;
        EXPECT_GE(mine, sets / static_cast<std::size_t>(ranks));
        EXPECT_LE(mine, sets / static_cast<std::size_t>(ranks) + 1);
      }
    }
}

// The parameter of `dimension` is a number below the number of dimensions.
TEST(ByDimension, RefusesOtherParameters) {
  const topology::Topology topology = stack();
  for (const std::string text : {"dimension:", "dimension:x", "dimension:-1", "dimension:1x"})
    EXPECT_THROW(PartitionOptions(text, {}), Error) << text;
  EXPECT_NO_THROW(PartitionOptions("dimension:2", {}).validate(topology, {}));
  EXPECT_THROW(PartitionOptions("dimension:3", {}).validate(topology, {}), Error);
}

class RankMap : public testing::Test {
 protected:
  std::string write(std::string_view text) {
    const auto path = folder_.path() / "map.part";
    std::ofstream(path) << text;
    return path.string();
  }
  std::string refusal(std::string_view text, std::uint32_t num_npus, int num_ranks) {
    try {
      made(write(text), ring(num_npus), num_ranks);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return error.what();
    }
    return "accepted";
  }

  test::TemporaryFolder folder_;
};

// A file has comments, blank lines and spaces. Line i of what remains is the rank of NPU i.
TEST_F(RankMap, HoldsOneRankPerLine) {
  const Partition partition = made(write("# comment\n1\n\n 0 \r\n% METIS comment\n1\n2"), ring(4), 3);
  EXPECT_EQ(partition.rank_of(NpuId(0)), Rank(1));
  EXPECT_EQ(partition.rank_of(NpuId(1)), Rank(0));
  ASSERT_EQ(partition.npus_of(Rank(1)).size(), 2U);
  EXPECT_EQ(partition.npus_of(Rank(1))[1], NpuId(2));
  EXPECT_EQ(partition.npus_of(Rank(2))[0], NpuId(3));
}

// Files that cannot be a rank map are refused with the file and the line.
TEST_F(RankMap, RefusesWithFileAndLine) {
  EXPECT_NE(refusal("0\nx\n", 2, 1).find("map.part:2: 'x' is not a whole number"), std::string::npos);
  EXPECT_NE(refusal("0 1\n", 2, 2).find(":1: '0 1' is not a whole number"), std::string::npos);
  EXPECT_NE(refusal("0\n2\n", 2, 2).find(":2: rank 2 does not exist; expected a rank, 0 to 1"), std::string::npos);
  EXPECT_NE(refusal("-1\n", 1, 2).find("rank -1 does not exist"), std::string::npos);
  EXPECT_NE(refusal("99999999999\n", 1, 2).find("does not exist"), std::string::npos);
  EXPECT_NE(refusal("0\n1\n0\n", 2, 2).find(":3: a rank too many"), std::string::npos);
  EXPECT_NE(refusal("0\n", 2, 2).find("ends after 1 rank;"), std::string::npos);
  try {
    made("no/such/file", ring(1), 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("there is no such file"), std::string::npos);
  }
}

// Any text that names no strategy is the file of a rank map.
TEST_F(RankMap, IsWhatNamesNoStrategy) {
  for (const std::string text : {"a/map", "dimension", "block:1", "metis:2"}) {
    EXPECT_TRUE(PartitionOptions(text, {}).is_rank_map()) << text;
    EXPECT_EQ(PartitionOptions(text, {}).text(), text);
  }
  EXPECT_EQ(PartitionOptions::rank_map("a/map"), PartitionOptions("a/map", {}));
}

// Every strategy of the registry has a line of help, and its example names it. It puts every NPU of 3 x 2 x 5 on a
// rank, the same each time.
TEST(Registry, EveryStrategyCanBeUsed) {
  const topology::Topology topology = stack();
  CommunicationGraph graph;
  graph.loads.assign(topology.num_npus(), 1);
  for (std::uint32_t i = 0; i + 1 < topology.num_npus(); ++i) graph.flows.push_back({i, i + 1, 100, 1});
  for (const Strategy& strategy : named_strategies()) {
    SCOPED_TRACE(strategy.name);
    EXPECT_FALSE(strategy.help.empty());
    const PartitionOptions options(strategy.example, {});
    EXPECT_EQ(&options.strategy(), &strategy);
    EXPECT_EQ(options.text(), strategy.example);
    EXPECT_EQ(PartitionOptions(options.text(), {}), options);
    EXPECT_TRUE(usage(strategy).starts_with(strategy.name));
    EXPECT_NO_THROW(options.validate(topology, {}));
    const auto* const needed = strategy.needs_traces ? &graph : nullptr;
    for (const int ranks : {1, 2, 5, 30, 64}) {
      const Partition one = options.make({topology, ranks, needed}), other = options.make({topology, ranks, needed});
      ASSERT_EQ(one.ranks().size(), topology.num_npus());
      EXPECT_EQ(one.num_ranks(), ranks);
      for (std::uint32_t i = 0; i < topology.num_npus(); ++i) EXPECT_EQ(one.rank_of(NpuId(i)), other.rank_of(NpuId(i)));
    }
  }
  EXPECT_TRUE(PartitionOptions().is_default());
  EXPECT_EQ(PartitionOptions().text(), named_strategies().front().name);
}

// The table of partitions/README.md has a row for each strategy of the registry, with its line of help.
TEST(Registry, IsTheTableOfTheDocument) {
  std::ifstream file(std::filesystem::path(ORRERY_SOURCE_DIR) / "partitions/README.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const Strategy& strategy : named_strategies())
    EXPECT_NE(text.str().find(fmt::format("\n| `{}` | {} |\n", usage(strategy), strategy.help)), std::string::npos)
        << strategy.name;
}

}  // namespace
}  // namespace orrery::partition
