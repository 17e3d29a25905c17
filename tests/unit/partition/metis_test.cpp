// The strategy `metis` on graphs that are made by hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "dimension_of.hpp"
#include "orrery/partition/communication_graph.hpp"
#include "orrery/partition/quality.hpp"
#include "orrery/partition/strategy.hpp"

namespace orrery::partition {
namespace {

/// `clusters` rings of `size` NPUs each, NPU i in cluster i mod `clusters`. Neighbours of a ring send much to each
/// other, and the first NPUs of the clusters send little.
CommunicationGraph scattered_clusters(std::uint32_t clusters, std::uint32_t size) {
  CommunicationGraph graph;
  graph.loads.assign(clusters * size, 10);
  for (std::uint32_t c = 0; c < clusters; ++c) {
    GroupTraffic group{{}, 1'000'000'000'000, size};
    for (std::uint32_t i = 0; i < size; ++i) {
      group.members.emplace_back(c + i * clusters);
      graph.flows.push_back({c + i * clusters, c + (i + 1) % size * clusters, 1'000'000'000'000, 3});
    }
    graph.groups.push_back(group);
    graph.flows.push_back({c, (c + 1) % clusters, 10, 1});
  }
  return graph;
}

Partition cut(const CommunicationGraph& graph, int num_ranks) {
  const auto size = static_cast<std::uint32_t>(graph.loads.size());
  const topology::Topology topology({topology::dimension_of(topology::Shape("Ring"), size)});
  return PartitionOptions("metis", {}).make({topology, num_ranks, &graph});
}

// There are 2 to 12 clusters and as many ranks. Each cluster is on one rank, and all ranks have the same load.
TEST(Metis, KeepsClustersTogether) {
  for (const std::uint32_t clusters : {2U, 3U, 4U, 12U}) {
    const auto graph = scattered_clusters(clusters, 8);
    const auto partition = cut(graph, static_cast<int>(clusters));
    for (std::uint32_t i = 0; i < graph.loads.size(); ++i)
      EXPECT_EQ(partition.rank_of(NpuId(i)), partition.rank_of(NpuId(i % clusters))) << clusters << " " << i;
    EXPECT_DOUBLE_EQ(balance(graph.loads, partition), 1);
  }
}

// METIS would cut between neighbours of the ids, which exchange least. Their links take 1 ns, so it cuts elsewhere.
TEST(Metis, KeepsShortLinksWithinRanks) {
  const auto graph = scattered_clusters(4, 4);
  auto inner = topology::dimension_of(topology::Shape("Ring"), 4), outer = inner;
  for (const double latency : {1.0, 500.0}) {
    inner.latency_ns = latency;
    outer.latency_ns = 500;
    const topology::Topology topology({inner, outer});
    const Partition partition = PartitionOptions("metis", {}).make({topology, 2, &graph});
    bool keeps = true;
    for (std::uint32_t i = 0; i < 16; ++i)
      keeps = keeps && partition.rank_of(NpuId(i)) == partition.rank_of(NpuId(i - i % 4));
    EXPECT_EQ(keeps, latency < 20) << latency;
    EXPECT_DOUBLE_EQ(balance(graph.loads, partition), 1);
  }
}

// Five clusters do not divide evenly among four ranks. The result is the same each time.
TEST(Metis, IsTheSameEachTime) {
  const auto graph = scattered_clusters(5, 6);
  const auto one = cut(graph, 4);
  const auto other = cut(graph, 4);
  for (std::uint32_t i = 0; i < graph.loads.size(); ++i) EXPECT_EQ(one.rank_of(NpuId(i)), other.rank_of(NpuId(i)));
}

// Four of 16 clusters have three times the load. Both ranks get about half of the load.
TEST(Metis, BalancesLoads) {
  auto graph = scattered_clusters(16, 4);
  for (std::uint32_t i = 0; i < graph.loads.size(); ++i) graph.loads[i] = i % 16 < 4 ? 3000 : 1000;
  EXPECT_LT(balance(graph.loads, cut(graph, 2)), 1.1);
}

// No NPU communicates, or there is one rank, or a rank for each NPU. The NPUs are dealt in blocks.
TEST(Metis, IsBlocksWhereNothingIsToBeCut) {
  CommunicationGraph silent;
  silent.loads.assign(8, 1);
  EXPECT_EQ(cut(silent, 2).rank_of(NpuId(3)), Rank(0));
  EXPECT_EQ(cut(silent, 2).rank_of(NpuId(4)), Rank(1));
  const auto graph = scattered_clusters(2, 2);
  EXPECT_EQ(cut(graph, 1).npus_of(Rank(0)).size(), 4U);
  for (const int ranks : {4, 9}) {
    const auto partition = cut(graph, ranks);
    for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(partition.npus_of(partition.rank_of(NpuId(i))).size(), 1U);
  }
}

// Four NPUs are on two ranks. The balance is the largest load of a rank over the mean.
TEST(Balance, IsLargestOverMean) {
  const Partition partition({Rank(0), Rank(0), Rank(1), Rank(1)}, 2);
  EXPECT_DOUBLE_EQ(balance(std::vector<std::uint64_t>{1, 1, 1, 1}, partition), 1);
  EXPECT_DOUBLE_EQ(balance(std::vector<std::uint64_t>{3, 3, 1, 1}, partition), 1.5);
  EXPECT_DOUBLE_EQ(balance(std::vector<std::uint64_t>{0, 0, 0, 0}, partition), 1);
}

}  // namespace
}  // namespace orrery::partition
