#include "orrery/partition/partitioning.hpp"

#include <gtest/gtest.h>

#include "orrery/base/error.hpp"

namespace orrery::partition {
namespace {

/// `clusters` rings of `size` NPUs each, NPU i in cluster i mod `clusters`; neighbours of a ring say much to each
/// other, and the clusters' first NPUs say little.
Conversation scattered_clusters(std::uint32_t clusters, std::uint32_t size) {
  Conversation conversation;
  conversation.loads.assign(clusters * size, 10);
  for (std::uint32_t c = 0; c < clusters; ++c) {
    GroupTraffic group{{}, 1'000'000'000'000, size};
    for (std::uint32_t i = 0; i < size; ++i) {
      group.members.emplace_back(c + i * clusters);
      conversation.flows.push_back({c + i * clusters, c + (i + 1) % size * clusters, 1'000'000'000'000, 3});
    }
    conversation.groups.push_back(group);
    conversation.flows.push_back({c, (c + 1) % clusters, 10, 1});
  }
  return conversation;
}

TEST(Cut, KeepsClustersTogether) {
  for (const std::uint32_t clusters : {2U, 3U, 4U, 12U}) {
    const auto conversation = scattered_clusters(clusters, 8);
    const auto partition = cut(conversation, static_cast<int>(clusters));
    for (std::uint32_t i = 0; i < conversation.loads.size(); ++i)
      EXPECT_EQ(partition.rank_of(NpuId(i)), partition.rank_of(NpuId(i % clusters))) << clusters << " " << i;
    EXPECT_DOUBLE_EQ(balance(conversation.loads, partition), 1);
  }
}

TEST(Cut, IsTheSameEachTime) {
  const auto conversation = scattered_clusters(5, 6);
  const auto one = cut(conversation, 4);
  const auto other = cut(conversation, 4);
  for (std::uint32_t i = 0; i < conversation.loads.size(); ++i)
    EXPECT_EQ(one.rank_of(NpuId(i)), other.rank_of(NpuId(i)));
}

TEST(Cut, BalancesLoads) {
  auto conversation = scattered_clusters(16, 4);
  for (std::uint32_t i = 0; i < conversation.loads.size(); ++i) conversation.loads[i] = i % 16 < 4 ? 3000 : 1000;
  EXPECT_LT(balance(conversation.loads, cut(conversation, 2)), 1.1);
}

TEST(Cut, IsBlocksWhereNothingIsToBeCut) {
  Conversation silent;
  silent.loads.assign(8, 1);
  EXPECT_EQ(cut(silent, 2).rank_of(NpuId(3)), Rank(0));
  EXPECT_EQ(cut(silent, 2).rank_of(NpuId(4)), Rank(1));
  const auto conversation = scattered_clusters(2, 2);
  EXPECT_EQ(cut(conversation, 1).npus_of(Rank(0)).size(), 4U);
  for (const int ranks : {4, 9}) {
    const auto partition = cut(conversation, ranks);
    for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(partition.npus_of(partition.rank_of(NpuId(i))).size(), 1U);
  }
}

TEST(Balance, IsLargestOverMean) {
  const auto partition = Partition::blocks(4, 2);
  EXPECT_DOUBLE_EQ(balance(std::vector<std::uint64_t>{1, 1, 1, 1}, partition), 1);
  EXPECT_DOUBLE_EQ(balance(std::vector<std::uint64_t>{3, 3, 1, 1}, partition), 1.5);
  EXPECT_DOUBLE_EQ(balance(std::vector<std::uint64_t>{0, 0, 0, 0}, partition), 1);
}

}  // namespace
}  // namespace orrery::partition
