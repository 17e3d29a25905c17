#include "orrery/base/text.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

// Numbers from 0 to 2e27 are written with at most four digits. The prefix is the largest that fits, and yotta beyond
// all.
TEST(Text, DecimalPrefixes) {
  EXPECT_EQ(with_prefix(0), "0");
  EXPECT_EQ(with_prefix(999), "999");
  EXPECT_EQ(with_prefix(1000), "1 k");
  EXPECT_EQ(with_prefix(175.12345e9), "175.1 G");
  EXPECT_EQ(with_prefix(2e27), "2000 Y");
}

// Sizes from 0 bytes to 2^64 - 1 are written with binary prefixes. Below 1 KiB the bytes are exact, above it there are
// two decimals.
TEST(Text, BinarySizes) {
  EXPECT_EQ(binary_size(0), "0 B");
  EXPECT_EQ(binary_size(1023), "1023 B");
  EXPECT_EQ(binary_size(1024), "1.00 KiB");
  EXPECT_EQ(binary_size(64U << 20U), "64.00 MiB");
  EXPECT_EQ(binary_size((1ULL << 30U) - 1), "1024.00 MiB");
  EXPECT_EQ(binary_size(3ULL << 29U), "1.50 GiB");
  EXPECT_EQ(binary_size(~std::uint64_t{0}), "16.00 EiB");
}

}  // namespace
}  // namespace orrery
