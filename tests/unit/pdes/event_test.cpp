#include "orrery/pdes/event.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "orrery/pdes/pending_set.hpp"

namespace orrery::pdes {
namespace {

Event event(std::int64_t ps, Stage stage, std::uint32_t source, std::uint64_t sequence) {
  Event e;
  e.time = Time::from_ps(ps);
  e.order = Event::make_order(stage, LpId(source), sequence);
  return e;
}

TEST(Event, IsOrderedByTimeStageSourceSequence) {
  const Event sorted[] = {
      event(1, Stage::npu, 0, 0),
      event(1, Stage::npu, 0, 1),
      event(1, Stage::npu, 7, 0),
      event(1, Stage::server, 0, 0),
      event(1, Stage::server, 3, 9),
      event(2, Stage::npu, 0, 0),
      event(std::int64_t{1} << 40, Stage::npu, 0, 0),
  };
  for (std::size_t i = 0; i < std::size(sorted); ++i)
    for (std::size_t j = 0; j < std::size(sorted); ++j) EXPECT_EQ(before(sorted[i], sorted[j]), i < j) << i << " " << j;
}

TEST(Event, KeyHoldsTheLargestValues) {
  const auto e = event(5, Stage::server, Event::max_source, 0xffffffffU);
  EXPECT_EQ(e.stage(), Stage::server);
  EXPECT_EQ(e.source().value(), Event::max_source);
  EXPECT_EQ(e.sequence(), 0xffffffffU);
}

TEST(Event, OverflowOfTheKeyIsTrapped) {
  EXPECT_THROW(Event::make_order(Stage::npu, LpId(Event::max_source + 1), 0), Error);
  EXPECT_THROW(Event::make_order(Stage::npu, LpId(0), std::uint64_t{1} << 32), Error);
}

TEST(PendingSet, GivesWhatSortingGives) {
  std::mt19937_64 random(7);
  for (const std::size_t size : {1U, 2U, 5U, 100U, 5000U}) {
    std::vector<Event> events;
    for (std::size_t i = 0; i < size; ++i)  // few times and sources: most are ties up to the sequence number
      events.push_back(event(static_cast<std::int64_t>(random() % 8), random() % 4 == 0 ? Stage::server : Stage::npu,
                             static_cast<std::uint32_t>(random() % 3), i));
    PendingSet pending;
    for (const Event& e : events) pending.push(e);
    std::sort(events.begin(), events.end(), before);
    for (const Event& expected : events) {
      EXPECT_EQ(pending.time(), expected.time);
      EXPECT_EQ(pending.top().order, expected.order);
      const Event found = pending.pop();
      ASSERT_EQ(found.time, expected.time);
      ASSERT_EQ(found.order, expected.order);
    }
    EXPECT_TRUE(pending.empty());
    EXPECT_EQ(pending.peak(), size);
  }
}

TEST(PendingSet, StaysInOrderWhileItIsUsed) {
  std::mt19937_64 random(11);
  PendingSet pending;
  std::vector<Event> shadow;
  std::size_t peak = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    if (shadow.empty() || random() % 5 < 3) {
      shadow.push_back(
          event(static_cast<std::int64_t>(random() % 50), Stage::npu, static_cast<std::uint32_t>(random() % 5), i));
      pending.push(shadow.back());
      peak = std::max(peak, shadow.size());
      if (shadow.size() > 300) shadow.clear(), pending = {}, peak = 0;
    } else {
      const auto least = std::min_element(shadow.begin(), shadow.end(), before);
      const Event found = pending.pop();
      ASSERT_EQ(found.time, least->time);
      ASSERT_EQ(found.order, least->order);
      shadow.erase(least);
    }
    ASSERT_EQ(pending.size(), shadow.size());
    ASSERT_EQ(pending.peak(), peak);
  }
}

TEST(PendingSet, IsAtNoTimeWhenEmpty) {
  PendingSet pending;
  EXPECT_TRUE(pending.empty());
  EXPECT_EQ(pending.time(), Time::max());
  EXPECT_EQ(pending.peak(), 0U);
}

}  // namespace
}  // namespace orrery::pdes
