// Cutting the rows of many keys into blocks that fit in memory.
#include "gather.hpp"

#include <gtest/gtest.h>

#include <random>

namespace orrery::results {
namespace {

// There are no keys, or the keys have no rows. Then there are no blocks.
TEST(Blocks, are_none_without_rows) {
  EXPECT_TRUE(blocks({}, 10).empty());
  const std::vector<std::int64_t> empty(5, 0);
  EXPECT_TRUE(blocks(empty, 10).empty());
}

// Three keys have 2, 50 and 3 rows, and a block holds at most 10. The key with 50 rows is a block of its own.
TEST(Blocks, one_key_with_too_many_rows_has_its_own) {
  const std::vector<std::int64_t> rows{2, 50, 3};
  const auto result = blocks(rows, 10);
  ASSERT_EQ(result.size(), 3U);
  EXPECT_EQ(result[1].num_rows, 50U);
  EXPECT_EQ(result[2].first_row, 52U);
}

// Blocks are made of 200 random tables. They follow each other without gaps, keep to the limit, and hold all rows.
TEST(Blocks, follow_each_other_and_hold_all_rows) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> rows(random() % 40);
    std::uint64_t total = 0;
    for (auto& count : rows) {
      count = static_cast<std::int64_t>(random() % 7);
      total += static_cast<std::uint64_t>(count);
    }
    const std::uint64_t limit = 1 + random() % 20;
    std::uint64_t next_row = 0;
    std::size_t next_key = 0;
    for (const Block& block : blocks(rows, limit)) {
      EXPECT_EQ(block.first_row, next_row);
      EXPECT_EQ(block.first_key, next_key);
      EXPECT_TRUE(block.num_rows <= limit || block.num_rows == static_cast<std::uint64_t>(rows[block.last_key - 1]));
      next_row += block.num_rows;
      next_key = block.last_key;
    }
    EXPECT_EQ(next_row, total);
  }
}

}  // namespace
}  // namespace orrery::results
