// The KV blocks of an instance: the order of the free list, the index, and what the two say of each other.
#include "block_pool.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::serving {
namespace {

std::vector<Block> taken(BlockPool& pool, std::uint32_t count) {
  std::vector<Block> blocks;
  pool.take_new(count, blocks);
  return blocks;
}

// Four blocks, of which two requests have three: the list is 3, then the first request from its end, then the second.
TEST(BlockPool, GivesBlocksInTheOrderInWhichTheyWereFreedTheLastOfARequestFirst) {
  BlockPool pool(4, true);
  const auto first = taken(pool, 2), second = taken(pool, 1);
  EXPECT_EQ(first, (std::vector<Block>{0, 1}));
  pool.release(first);
  pool.release(second);
  EXPECT_EQ(taken(pool, 4), (std::vector<Block>{3, 1, 0, 2}));
  EXPECT_EQ(pool.free(), 0U);
}

// A full block stays in the index when it is free, and leaves it when it is taken for other tokens.
TEST(BlockPool, FindsAFreeBlockUntilItIsTakenForSomethingElse) {
  BlockPool pool(2, true);
  const auto blocks = taken(pool, 1);
  pool.enter(77, blocks[0]);
  pool.release(blocks);
  Block found = 9;
  ASSERT_TRUE(pool.find(77, found));
  EXPECT_EQ(found, blocks[0]);
  EXPECT_EQ(pool.idle(blocks), 1U);
  pool.take_found(blocks);
  EXPECT_EQ(pool.free(), 1U);
  pool.release(blocks);
  taken(pool, 2);
  EXPECT_FALSE(pool.find(77, found));
  EXPECT_EQ(pool.evicted(), 1U);
}

// Two blocks of one key: the first one is found.
TEST(BlockPool, KeepsTheFirstBlockOfAKey) {
  BlockPool pool(3, true);
  const auto blocks = taken(pool, 2);
  pool.enter(5, blocks[0]);
  pool.enter(5, blocks[1]);
  Block found = 9;
  ASSERT_TRUE(pool.find(5, found));
  EXPECT_EQ(found, blocks[0]);
}

// 100 keys that collide, of which every third is erased: the others are found.
TEST(KeyIndex, FindsWhatWasInsertedAndNotErasedWhereverEntriesCollide) {
  KeyIndex index(100);
  for (std::uint64_t key = 0; key < 100; ++key) EXPECT_TRUE(index.insert(key * 64, static_cast<std::uint32_t>(key)));
  EXPECT_FALSE(index.insert(64, 3));
  for (std::uint64_t key = 0; key < 100; key += 3) index.erase(key * 64);
  for (std::uint64_t key = 0; key < 100; ++key) {
    std::uint32_t value = 0;
    EXPECT_EQ(index.find(key * 64, value), key % 3 != 0) << key;
    if (key % 3 != 0) {
      EXPECT_EQ(value, key);
    }
  }
}

}  // namespace
}  // namespace orrery::serving
