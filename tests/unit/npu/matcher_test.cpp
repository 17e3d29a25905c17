// The matching of messages and receives where many channels come and go.
#include "matcher.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

namespace orrery::npu {
namespace {

using Messages = Matcher<int, char>;

// 20,000 random steps on channels of 4 NPUs and 64 tags: items come back as from a queue for each channel, also after
// all of them have been taken.
TEST(Matcher, IsAQueueForEachChannel) {
  Messages matcher;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<int>> queues;
  std::mt19937 random(7);
  std::size_t num_left = 0;
  const auto take = [&](std::uint32_t npu, std::uint32_t tag) {
    auto& queue = queues[{npu, tag}];
    int item = -1;
    ASSERT_EQ(matcher.take({NpuId(npu), tag}, item), !queue.empty());
    if (queue.empty()) return;
    EXPECT_EQ(item, queue.front());
    queue.pop_front();
    --num_left;
  };
  for (int step = 0; step < 20000; ++step) {
    const auto npu = static_cast<std::uint32_t>(random() % 4);
    const auto tag = static_cast<std::uint32_t>(random() % 64) * (npu == 3 ? 1000003U : 1U);
    const bool leaves = random() % 100 < (step / 2000 % 2 == 0 ? 60U : 40U);  // it grows and shrinks in turn
    if (!leaves) {
      take(npu, tag);
      continue;
    }
    matcher.leave({NpuId(npu), tag}, step);
    queues[{npu, tag}].push_back(step);
    ++num_left;
  }
  std::size_t num_visited = 0;
  matcher.for_each_posted([&](ChannelKey, int) { ++num_visited; });
  EXPECT_EQ(num_visited, num_left);
  for (auto& [channel, queue] : queues)
    for (std::size_t left = queue.size() + 1; left > 0; --left) take(channel.first, channel.second);
  EXPECT_EQ(num_left, 0U);
}

// Channels change their names, and what has arrived changes, as when a run is resumed with other NPUs.
TEST(Matcher, ItemsMoveToOtherChannels) {
  Messages matcher;
  for (std::uint32_t tag = 0; tag < 50; ++tag) {
    matcher.leave({NpuId(1), tag}, static_cast<int>(tag));
    matcher.leave({NpuId(1), tag}, static_cast<int>(tag) + 100);
    matcher.leave({NpuId(2), tag}, 'a');
  }
  matcher.take_over(
      [](ChannelKey key) {
        return ChannelKey{NpuId(key.other.value() + 4), key.tag + 7};
      },
      [](char& item) { item = 'b'; });
  for (std::uint32_t tag = 0; tag < 50; ++tag) {
    int posted = -1;
    char arrived = 0;
    EXPECT_FALSE(matcher.take({NpuId(1), tag}, posted));
    EXPECT_TRUE(matcher.take({NpuId(5), tag + 7}, posted));
    EXPECT_EQ(posted, static_cast<int>(tag));
    EXPECT_TRUE(matcher.take({NpuId(5), tag + 7}, posted));
    EXPECT_EQ(posted, static_cast<int>(tag) + 100);
    EXPECT_TRUE(matcher.take({NpuId(6), tag + 7}, arrived));
    EXPECT_EQ(arrived, 'b');
  }
}

}  // namespace
}  // namespace orrery::npu
