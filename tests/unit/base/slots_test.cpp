#include "orrery/base/slots.hpp"

#include <gtest/gtest.h>

#include <string>

namespace orrery {
namespace {

// Two values are put into slots, the first one is taken, and a third one is put: it gets the slot that is free.
TEST(Slots, AFreeSlotIsUsedAgain) {
  Slots<std::string> slots;
  const auto first = slots.put("a"), second = slots.put("b");
  EXPECT_NE(first, second);
  EXPECT_EQ(slots.take(first), "a");
  EXPECT_EQ(slots.in_use(), 1U);
  EXPECT_EQ(slots.put("c"), first);
  EXPECT_EQ(slots[first], "c");
  EXPECT_EQ(slots[second], "b");
}

}  // namespace
}  // namespace orrery
