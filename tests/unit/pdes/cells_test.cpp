#include "orrery/pdes/cells.hpp"

#include <gtest/gtest.h>

#include <set>

namespace orrery::pdes {
namespace {

Event event(std::int64_t time, std::uint32_t lp) {
  return Event::make(Time::from_ps(time), Stage::client, LpId(lp), 0, LpId(lp));
}

/// Clients 0 and 1 are in cell 0, clients 2 and 3 in cell 1.
Cells two_cells() { return Cells({0, 0, 1, 1}, 4); }

TEST(Cells, TheActiveCellGivesItsEventsInTheOrderOfTime) {
  // Cell 0 has events at 30 and 10, cell 1 at 20 and 5: cell 0, which came first, must give both of its own first.
  Cells cells = two_cells();
  for (const auto& [time, lp] : {std::pair{30, 0U}, {20, 2U}, {10, 1U}, {5, 3U}}) cells.push(event(time, lp));
  std::vector<std::int64_t> order;
  while (cells.activate_ready()) {
    while (cells.has_pending()) order.push_back(cells.pop().time.ps());
    cells.rest(false);
  }
  EXPECT_EQ(order, (std::vector<std::int64_t>{10, 30, 5, 20}));
  EXPECT_EQ(cells.size(), 0U);
  EXPECT_EQ(cells.peak(), 4U);
  EXPECT_EQ(cells.time(), Time::max());
}

TEST(Cells, ACellGivesManyEventsInTheOrderOfTime) {
  // 500 events come in a fixed disorder, and after each ten of them three leave. The ones that leave are the earliest
  // of those that are there, as in an ordered set.
  Cells cells({0, 0}, 2);
  std::multiset<std::int64_t> expected;
  cells.push(event(1000, 0));
  expected.insert(1000);
  ASSERT_TRUE(cells.activate_ready());
  for (std::int64_t i = 0; i < 500; ++i) {
    const std::int64_t time = i * 7919 % 1009;
    cells.push(event(time, static_cast<std::uint32_t>(i % 2)));
    expected.insert(time);
    for (int leaves = i % 10 == 9 ? 3 : 0; leaves > 0; --leaves) {
      EXPECT_EQ(cells.pop().time.ps(), *expected.begin());
      expected.erase(expected.begin());
    }
  }
  EXPECT_EQ(cells.size(), expected.size());
  std::multiset<std::int64_t> left;
  cells.for_each([&](const Event& one) { left.insert(one.time.ps()); });
  EXPECT_EQ(left, expected);
  for (const std::int64_t time : expected) EXPECT_EQ(cells.pop().time.ps(), time);
  EXPECT_FALSE(cells.has_pending());
}

TEST(Cells, TheEarliestEventOfAllIsKnown) {
  // Pending, deferred, and of the active cell.
  Cells cells = two_cells();
  cells.push(event(10, 0));
  cells.push(event(7, 2));
  EXPECT_EQ(cells.time(), Time::from_ps(7));
  EXPECT_EQ(cells.first_lp(), LpId(2));
  ASSERT_TRUE(cells.activate_ready());
  EXPECT_EQ(cells.time(), Time::from_ps(7));
  cells.defer(cells.pop());
  EXPECT_TRUE(cells.holds(LpId(0)));
  cells.push(event(3, 1));
  EXPECT_EQ(cells.first_lp(), LpId(1));
  cells.rest(true);
  EXPECT_EQ(cells.time(), Time::from_ps(3));
  cells.activate_earliest();
  EXPECT_EQ(cells.pop().time, Time::from_ps(3));
  EXPECT_FALSE(cells.has_pending());
  cells.rest(false);
  ASSERT_TRUE(cells.activate_ready());
  EXPECT_EQ(cells.pop().time, Time::from_ps(7));
  EXPECT_EQ(cells.first_lp(), LpId(0));
}

// All events of two cells are deferred, so no cell is ready. Those of a client that is released make its cell ready,
// and so do those that are released because they are before a time.
TEST(Cells, ReleasedEventsMakeTheirCellReady) {
  Cells cells = two_cells();
  for (const auto& [time, lp] : {std::pair{10, 0U}, {20, 1U}, {30, 2U}}) cells.push(event(time, lp));
  while (cells.activate_ready()) {
    while (cells.has_pending()) cells.defer(cells.pop());
    cells.rest(false);
  }
  EXPECT_FALSE(cells.release_before(Time::from_ps(10)));
  EXPECT_TRUE(cells.release_before(Time::from_ps(11)));
  ASSERT_TRUE(cells.activate_ready());
  EXPECT_EQ(cells.pop().time, Time::from_ps(10));
  EXPECT_FALSE(cells.has_pending());
  cells.rest(false);
  cells.release(LpId(2));
  ASSERT_TRUE(cells.activate_ready());
  EXPECT_EQ(cells.top().target, LpId(2));
  EXPECT_TRUE(cells.has_deferred());
}

TEST(Cells, ATurnEnds) {
  // A cell that always has certain events must let others go on after 4,096 events.
  Cells cells = two_cells();
  cells.push(event(1, 0));
  cells.push(event(2, 2));
  ASSERT_TRUE(cells.activate_ready());
  EXPECT_FALSE(cells.has_had_its_turn(4095));
  EXPECT_TRUE(cells.has_had_its_turn(1));
  cells.rest(true);
  ASSERT_TRUE(cells.activate_ready());
  EXPECT_EQ(cells.top().target, LpId(2));
}

}  // namespace
}  // namespace orrery::pdes
