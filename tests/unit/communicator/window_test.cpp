#include "orrery/communicator/window.hpp"

#include <gtest/gtest.h>

namespace orrery::communicator {
namespace {

struct Item {
  bool done = false;
  int value = 0;

  void clear() { *this = {}; }
};

// Collectives 0 to 4 are under way. When 1 is over it stays, because 0 is under way; when 0 is over both leave.
TEST(Window, CollectivesLeaveFromTheFront) {
  Window<Item> window;
  for (std::uint32_t ordinal = 0; ordinal < 5; ++ordinal) window.at(ordinal).value = static_cast<int>(10 + ordinal);
  window.at(1).done = true;
  window.retire();
  EXPECT_EQ(window.first(), 0U);
  window.at(0).done = true;
  window.retire();
  EXPECT_EQ(window.first(), 2U);
  EXPECT_EQ(window.count(), 3U);
  EXPECT_EQ(window.at(4).value, 14);
  EXPECT_THROW(window.at(1), Error);
}

// Memory that has served is clear when it serves again.
TEST(Window, PlacesServeAgain) {
  Window<Item> window;
  for (std::uint32_t ordinal = 0; ordinal < 100; ++ordinal) {
    EXPECT_EQ(window.at(ordinal).value, 0);
    window.at(ordinal) = {true, 7};
    window.at(ordinal + 1).value += 0;
    window.retire();
    EXPECT_EQ(window.first(), ordinal + 1);
  }
}

// The third collective is asked for first: those before it are added too.
TEST(Window, ALaterCollectiveMayComeFirst) {
  Window<Item> window;
  window.at(2).value = 5;
  EXPECT_EQ(window.count(), 3U);
  EXPECT_EQ(window.at(0).value, 0);
  EXPECT_EQ(window.at(2).value, 5);
}

}  // namespace
}  // namespace orrery::communicator
