#include "shared_sms.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace orrery::npu {
namespace {

constexpr Time at_us(std::int64_t microseconds) { return Time::from_ns(1000 * microseconds); }

/// The speed of nodes is the share of SMs that is left.
SharedSms::Stretches of_sms(std::uint32_t sms) {
  return [sms](NodeId, std::uint32_t held) {
    return held >= sms ? SharedSms::Stretch{0, 1} : SharedSms::Stretch{sms, sms - held};
  };
}

// Of 4 SMs blocks hold 2 from 10 to 30 us, and all 4 from 30 to 35 us. A node of 50 us has done 10 by 10, 20 by 30, and
// 20 by 35 us. The other 30 take as long.
TEST(SharedSms, ANodeGoesOnAtTheSpeedOfTheSmsThatAreLeft) {
  SharedSms sms(of_sms(4));
  EXPECT_EQ(sms.begin(NodeId(7), at_us(50), at_us(0)), at_us(50));
  auto changed = sms.hold(2, at_us(10));
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].id, NodeId(7));
  EXPECT_EQ(changed[0].finish, at_us(90));
  changed = sms.hold(4, at_us(30));
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].finish, Time::max());
  EXPECT_FALSE(sms.end(NodeId(7), at_us(50)));  // the event of its first end
  changed = sms.hold(0, at_us(35));
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].finish, at_us(65));
  EXPECT_TRUE(sms.end(NodeId(7), at_us(65)));
  EXPECT_FALSE(sms.end(NodeId(7), at_us(90)));  // it has ended
}

// A node that begins while blocks hold SMs is slow from its start, and one that begins when none is left waits.
TEST(SharedSms, NodesThatBeginBesideBlocks) {
  SharedSms sms(of_sms(3));
  EXPECT_TRUE(sms.hold(1, at_us(0)).empty());
  EXPECT_EQ(sms.begin(NodeId(1), at_us(10), at_us(0)), at_us(15));
  EXPECT_EQ(sms.hold(5, at_us(3)).size(), 1U);  // more than there are
  EXPECT_EQ(sms.begin(NodeId(2), at_us(10), at_us(4)), Time::max());
  EXPECT_EQ(sms.hold(0, at_us(20)).size(), 2U);
  EXPECT_TRUE(sms.end(NodeId(1), at_us(28)));  // it had done 2 of 10
  EXPECT_TRUE(sms.end(NodeId(2), at_us(30)));
}

// Nodes may be slowed down differently: node 1 takes three halves as long while an SM is held, and node 2 is not
// slower.
TEST(SharedSms, EachNodeHasItsOwnStretch) {
  SharedSms sms([](NodeId id, std::uint32_t held) {
    return held > 0 && id == NodeId(1) ? SharedSms::Stretch{3, 2} : SharedSms::Stretch{};
  });
  EXPECT_EQ(sms.begin(NodeId(1), at_us(20), at_us(0)), at_us(20));
  EXPECT_EQ(sms.begin(NodeId(2), at_us(20), at_us(0)), at_us(20));
  const auto changed = sms.hold(1, at_us(10));
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].id, NodeId(1));
  EXPECT_EQ(changed[0].finish, at_us(25));
}

// With random changes a node ends when the integral of its speed is its time, up to a tick for each change.
TEST(SharedSms, AgreesWithAnIntegral) {
  std::mt19937 engine(3);
  const auto random = [&](std::uint32_t below) {
    return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(engine);
  };
  for (int turn = 0; turn < 200; ++turn) {
    const std::uint32_t count = 2 + random(130);
    SharedSms sms(of_sms(count));
    const std::int64_t whole = 1 + std::int64_t{random(1'000'000)};
    Time finish = sms.begin(NodeId(0), Time::from_ps(whole), Time::zero());
    double done = 0;
    std::int64_t now = 0;
    std::uint32_t held = 0;
    int changes = 0;
    for (; changes < 20; ++changes) {
      const std::int64_t next = now + 1 + random(100'000);
      if (Time::from_ps(next) >= finish) break;
      done += static_cast<double>(next - now) * (count - held) / count;
      now = next;
      held = random(count);
      for (const auto& node : sms.hold(held, Time::from_ps(now))) finish = node.finish;
    }
    const double expected = static_cast<double>(now) + (static_cast<double>(whole) - done) * count / (count - held);
    EXPECT_NEAR(static_cast<double>(finish.ps()), expected, 2.0 * (changes + 1) * count) << "turn " << turn;
    EXPECT_GE(static_cast<double>(finish.ps()) + 1, expected);
    EXPECT_TRUE(sms.end(NodeId(0), finish));
  }
}

}  // namespace
}  // namespace orrery::npu
