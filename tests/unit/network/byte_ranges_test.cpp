// Sets of bytes of messages: what is added and erased is what a table of single bytes says.
#include "packet/transports/byte_ranges.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "orrery/base/mix.hpp"

namespace orrery::network {
namespace {

using Range = ByteRanges::Range;

// A range between two others makes one of all three.
TEST(ByteRanges, JoinsRangesThatTouch) {
  ByteRanges set;
  set.add(10, 20);
  set.add(30, 40);
  set.add(20, 30);
  EXPECT_EQ(set.ranges(), (std::vector<Range>{{10, 40}}));
  EXPECT_EQ(set.bytes(), 30U);
}

// Of 100 bytes 20 in the middle are erased: two ranges of 40 are left.
TEST(ByteRanges, SplitsARangeThatIsErasedInTheMiddle) {
  ByteRanges set;
  set.add(0, 100);
  set.erase(40, 60);
  EXPECT_EQ(set.ranges(), (std::vector<Range>{{0, 40}, {60, 100}}));
  EXPECT_EQ(set.first(), 0U);
}

// The only range begins with byte 10: nothing is taken from byte 5 on, and all of it from byte 10 on.
TEST(ByteRanges, TakesTheRangeThatFollows) {
  ByteRanges set;
  set.add(10, 20);
  EXPECT_EQ(set.take_from(5), 5U);
  EXPECT_EQ(set.take_from(10), 20U);
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.bytes(), 0U);
}

// 2,000 drawn operations on 64 bytes.
TEST(ByteRanges, AgreesWithSingleBytes) {
  ByteRanges set;
  std::vector<bool> bytes(64);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t draw = mix(7, i), begin = draw % 64, end = begin + (draw >> 8U) % (65 - begin);
    const bool adds = (draw >> 40U) % 2 == 0;
    if (adds)
      set.add(begin, end);
    else
      set.erase(begin, end);
    for (std::uint64_t b = begin; b < end; ++b) bytes[b] = adds;
    std::vector<Range> expected;
    std::uint64_t count = 0;
    for (std::uint64_t b = 0; b < 64; ++b) {
      if (!bytes[b]) continue;
      ++count;
      if (b > 0 && bytes[b - 1])
        expected.back().second = b + 1;
      else
        expected.emplace_back(b, b + 1);
    }
    ASSERT_EQ(set.ranges(), expected);
    ASSERT_EQ(set.bytes(), count);
  }
}

}  // namespace
}  // namespace orrery::network
