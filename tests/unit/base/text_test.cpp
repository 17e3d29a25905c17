#include "orrery/base/text.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Text, DecimalPrefixes) {
  EXPECT_EQ(with_prefix(0), "0");
  EXPECT_EQ(with_prefix(999), "999");
  EXPECT_EQ(with_prefix(1000), "1 k");
  EXPECT_EQ(with_prefix(175.12345e9), "175.1 G");
  EXPECT_EQ(with_prefix(2e27), "2000 Y");
}

}  // namespace
}  // namespace orrery
