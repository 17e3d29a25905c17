#include "orrery/base/slots.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

// Of three values the second one is taken. The others are visited in the order of their slots. Other slots that read
// what these write have the same values in the same slots, and give the free one next.
TEST(Slots, AreReadAsTheyWereWritten) {
  Slots<int> slots;
  for (const int value : {10, 11, 12}) slots.put(value);
  slots.take(1);
  Archive archive;
  slots.serialize(archive);
  const std::vector<std::byte> bytes = archive.written();
  Archive reader(bytes);
  Slots<int> others;
  others.serialize(reader);
  EXPECT_TRUE(reader.is_at_end());
  std::vector<std::pair<std::uint32_t, int>> seen;
  others.for_each([&](std::uint32_t slot, int value) { seen.emplace_back(slot, value); });
  EXPECT_EQ(seen, (std::vector<std::pair<std::uint32_t, int>>{{0, 10}, {2, 12}}));
  EXPECT_EQ(others.put(13), 1U);
}

}  // namespace
}  // namespace orrery
