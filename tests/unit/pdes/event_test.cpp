#include "orrery/pdes/event.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "orrery/pdes/pending_set.hpp"

namespace orrery::pdes {
namespace {

Event event(std::int64_t ps, Stage stage, std::uint32_t source, std::uint64_t sequence) {
  Event e;
  e.time = Time::from_ps(ps);
  e.order = Event::make_order(stage, LpId(source), sequence);
  return e;
}

// Seven events differ in time, stage, source or sequence number. `before` orders every pair of them by these four, in
// this order.
TEST(Event, IsOrderedByTimeStageSourceSequence) {
  const Event sorted[] = {
      event(1, Stage::client, 0, 0),
      event(1, Stage::client, 0, 1),
      event(1, Stage::client, 7, 0),
      event(1, Stage::server, 0, 0),
      event(1, Stage::server, 3, 9),
      event(2, Stage::client, 0, 0),
      event(std::int64_t{1} << 40, Stage::client, 0, 0),
  };
  for (std::size_t i = 0; i < std::size(sorted); ++i)
    for (std::size_t j = 0; j < std::size(sorted); ++j) EXPECT_EQ(before(sorted[i], sorted[j]), i < j) << i << " " << j;
}

// An event has the largest source and the largest sequence number. Its key gives both back.
TEST(Event, KeyHoldsTheLargestValues) {
  const auto e = event(5, Stage::server, Event::max_source, 0xffffffffU);
  EXPECT_EQ(e.stage(), Stage::server);
  EXPECT_EQ(e.source().value(), Event::max_source);
  EXPECT_EQ(e.sequence(), 0xffffffffU);
}

// A source or a sequence number is one larger than its part of the key. An error is thrown.
TEST(Event, OverflowOfTheKeyIsTrapped) {
  EXPECT_THROW(Event::make_order(Stage::client, LpId(Event::max_source + 1), 0), Error);
  EXPECT_THROW(Event::make_order(Stage::client, LpId(0), std::uint64_t{1} << 32), Error);
}

// Up to 5000 events with many ties are put into the set. They come out in sorted order, and the peak is their number.
TEST(PendingSet, GivesWhatSortingGives) {
  std::mt19937_64 random(7);
  for (const std::size_t size : {1U, 2U, 5U, 100U, 5000U}) {
    std::vector<Event> events;
    for (std::size_t i = 0; i < size; ++i)  // few times and sources: most are ties up to the sequence number
      events.push_back(event(static_cast<std::int64_t>(random() % 8), random() % 4 == 0 ? Stage::server : Stage::client,
                             static_cast<std::uint32_t>(random() % 3), i));
    PendingSet pending;
    for (const Event& e : events) pending.push(e);
    std::sort(events.begin(), events.end(), before);
    for (const Event& expected : events) {
      EXPECT_EQ(pending.time(), expected.time);
      const Event found = pending.pop();
      ASSERT_EQ(found.time, expected.time);
      ASSERT_EQ(found.order, expected.order);
    }
    EXPECT_TRUE(pending.empty());
    EXPECT_EQ(pending.peak(), size);
  }
}

// Up to 200 events at a time go into the set, of few times around the one at hand, and some come out in between. Now
// and then those of one kind of source are taken out, directly after others came in. All come out in order, and all
// that are in are visited.
TEST(PendingSet, SortsWhatComesTogether) {
  std::mt19937_64 random(5);
  PendingSet pending;
  std::set<Event, decltype(&before)> shadow(before);
  std::int64_t now = 0;
  for (std::uint64_t i = 0, number = 0; i < 2'000; ++i) {
    for (std::size_t many = random() % 201; many > 0; --many) {
      const auto one = event(now + static_cast<std::int64_t>(random() % 4 * 100), Stage::client,
                             static_cast<std::uint32_t>(random() % 50), number++);
      shadow.insert(one);
      pending.push(one);
    }
    std::size_t visited = 0;
    pending.for_each([&](const Event&) { ++visited; });
    ASSERT_EQ(visited, shadow.size());
    if (i % 20 == 0) {
      const auto is_wanted = [](const Event& one) { return one.source().value() % 5 == 0; };
      EXPECT_EQ(pending.take(is_wanted).size(), std::erase_if(shadow, is_wanted));
    }
    for (std::size_t many = random() % 201; many > 0 && !shadow.empty(); --many) {
      ASSERT_EQ(pending.time(), shadow.begin()->time);
      const Event found = pending.pop();
      ASSERT_EQ(found.order, shadow.begin()->order);
      now = found.time.ps();
      shadow.erase(shadow.begin());
    }
    ASSERT_EQ(pending.time(), shadow.empty() ? Time::max() : shadow.begin()->time);
  }
}

// The set grows and shrinks while time goes on, with events that come earlier than what has been taken too.
void expect_order(const std::function<std::int64_t(std::int64_t now, std::mt19937_64&)>& time_of_next) {
  std::mt19937_64 random(11);
  PendingSet pending;
  std::set<Event, decltype(&before)> shadow(before);
  std::size_t peak = 0;
  std::int64_t now = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const bool grows = i / 20'000 % 2 == 0;
    if (shadow.empty() || random() % 5 < (grows ? 3 : 2)) {
      const auto one = event(time_of_next(now, random), Stage::client, static_cast<std::uint32_t>(random() % 5), i);
      shadow.insert(one);
      pending.push(one);
      peak = std::max(peak, shadow.size());
    } else {
      const Event found = pending.pop();
      now = found.time.ps();
      ASSERT_EQ(found.time, shadow.begin()->time);
      ASSERT_EQ(found.order, shadow.begin()->order);
      shadow.erase(shadow.begin());
    }
    ASSERT_EQ(pending.size(), shadow.size());
    ASSERT_EQ(pending.peak(), peak);
    ASSERT_EQ(pending.time(), shadow.empty() ? Time::max() : shadow.begin()->time);
  }
}

// 100,000 events go in and out of the set, with seven patterns of times. Each event that comes out is the first of
// those that are in.
TEST(PendingSet, StaysInOrderWhateverTheTimes) {
  const auto below = [](std::mt19937_64& random, std::uint64_t most) {
    return static_cast<std::int64_t>(random() % most);
  };
  const std::int64_t end = Time::max().ps() - 1;
  expect_order([&](auto, auto& random) { return below(random, 50); });
  expect_order([&](auto now, auto& random) { return now + below(random, 1'000'000); });
  expect_order([&](auto now, auto& random) { return now + 1000 * below(random, 4); });
  expect_order(
      [&](auto now, auto& random) { return random() % 100 ? now + below(random, 1000) : now + 1'000'000'000'000; });
  expect_order([&](auto now, auto& random) {
    return random() % 100 ? now + below(random, 100'000) : std::max<std::int64_t>(0, now - 5'000);
  });
  expect_order([&](auto, auto& random) { return random() % 2 ? below(random, 1000) : end - below(random, 1000); });
  expect_order([&](auto, auto& random) { return below(random, static_cast<std::uint64_t>(end)); });
}

// 4,096 events are in the set. Each time that one comes out, another one goes in. More than half of the events are
// prefetched before they come out, and none more than 512 events before.
TEST(PendingSet, PrefetchesWhatComesOutSoon) {
  constexpr std::uint64_t num_events = 100'000, num_pending = 4096;
  std::mt19937_64 random(13);
  PendingSet pending;
  std::uint64_t num_pushed = 0;
  const auto push = [&](std::int64_t now) {
    const auto delay = static_cast<std::int64_t>(100'000 + random() % 100'000);
    pending.push(event(now + delay, Stage::server, 0, num_pushed++));
  };
  while (num_pushed < num_pending) push(0);
  std::vector<std::uint64_t> prefetched_at(num_events + num_pending, 0);
  std::uint64_t num_prefetched = 0;
  for (std::uint64_t i = 1; i <= num_events; ++i) {
    const Event found = pending.pop([&](const Event& soon) { prefetched_at[soon.sequence()] = i; });
    if (const std::uint64_t at = prefetched_at[found.sequence()]; at > 0 && at < i) {
      ASSERT_LE(i - at, 512U);
      ++num_prefetched;
    }
    push(found.time.ps());
  }
  EXPECT_GT(num_prefetched, num_events / 2);
}

// 1,000 events are in the set, some near and most far. Those of odd LPs are taken out, a quarter of them come back
// later, and all that is left comes out in order.
TEST(PendingSet, GivesBackWhatIsTaken) {
  std::mt19937_64 random(14);
  PendingSet pending;
  for (std::uint64_t i = 0; i < 1000; ++i)
    pending.push(
        event(static_cast<std::int64_t>(random() % 100'000), Stage::server, static_cast<std::uint32_t>(i % 2), i));
  for (int i = 0; i < 10; ++i) pending.pop();
  const auto is_odd = [](const Event& waiting) { return waiting.source().value() == 1; };
  std::vector<Event> taken = pending.take(is_odd);
  const std::size_t num_left = pending.size();
  EXPECT_EQ(num_left + taken.size(), 990U);
  EXPECT_TRUE(std::ranges::all_of(taken, is_odd));
  for (std::size_t i = 0; i < taken.size(); i += 4) {
    taken[i].time += Time::from_ps(150'000);
    pending.push(taken[i]);
  }
  std::vector<Event> found;
  while (!pending.empty()) found.push_back(pending.pop());
  EXPECT_TRUE(std::ranges::is_sorted(found, before));
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count_if(found, is_odd)), found.size() - num_left);
  EXPECT_TRUE(pending.take([](const Event&) { return true; }).empty());
}

// A set has had no events. Its time is never and its peak is 0.
TEST(PendingSet, IsAtNoTimeWhenEmpty) {
  PendingSet pending;
  EXPECT_TRUE(pending.empty());
  EXPECT_EQ(pending.time(), Time::max());
  EXPECT_EQ(pending.peak(), 0U);
}

}  // namespace
}  // namespace orrery::pdes
