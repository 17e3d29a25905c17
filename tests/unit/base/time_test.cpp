#include <gtest/gtest.h>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"

namespace orrery {
namespace {

constexpr Bandwidth rate(double bytes_per_ns) { return Bandwidth::from_bytes_per_ns(bytes_per_ns); }

// Time::max() stands for never. A sum with it is never again.
TEST(Time, NeverPlusADelayIsNever) {
  EXPECT_EQ(Time::max() + Time::from_ps(1), Time::max());
  EXPECT_EQ(Time::from_ps(1) + Time::max(), Time::max());
  Time time = Time::max();
  time += Time::from_ns(5);
  EXPECT_EQ(time, Time::max());
}

// Sums, products and conversions reach beyond the range of Time. They give never, and the largest value that fits stays
// exact.
TEST(Time, WhatDoesNotFitIsNever) {
  const Time last = Time::from_ps(Time::max().ps() - 1);
  EXPECT_EQ(last + Time::zero(), last);
  EXPECT_EQ(last + Time::from_ps(1), Time::max());
  EXPECT_EQ(last + last, Time::max());
  EXPECT_EQ(Time::from_ps(Time::max().ps() / 2) * 2, last);
  EXPECT_EQ(Time::from_ps(Time::max().ps() / 2) * 3, Time::max());
  EXPECT_EQ(Time::from_ns(Time::max().ps()), Time::max());
}

// Times are made from nanoseconds and picoseconds. Sums, differences, products and comparisons are exact in
// picoseconds.
TEST(Time, CountsPicoseconds) {
  EXPECT_EQ(Time::from_ns(3), Time::from_ps(3000));
  EXPECT_EQ((Time::from_ns(3) - Time::from_ps(1)).ps(), 2999);
  EXPECT_EQ((Time::from_ps(7) * 3).ps(), 21);
  EXPECT_LT(Time::zero(), Time::from_ps(1));
  EXPECT_DOUBLE_EQ(Time::from_ns(1500).seconds(), 1.5e-6);
}

// The tick is the least time that a rounding can tell apart. It is 1 ps in the project's own rules and 1 ns in ASTRA-
// sim's.
TEST(Tick, FollowsTheRounding) {
  EXPECT_EQ(tick(Rounding::up_to_ps), Time::from_ps(1));
  EXPECT_EQ(tick(Rounding::down_to_ns), Time::from_ns(1));
}

// Durations come as fractions of nanoseconds. The project's own rules round them to the nearest picosecond, ASTRA-sim's
// cut them to whole nanoseconds.
TEST(Duration, IsRoundedToPicosecondsOrCutToNanoseconds) {
  EXPECT_EQ(duration_from_ns(1.2345, Rounding::up_to_ps).ps(), 1235);  // the nearest: 1234.5
  EXPECT_EQ(duration_from_ns(1.9999, Rounding::down_to_ns).ps(), 1000);
  EXPECT_EQ(duration_from_ns(0.9, Rounding::down_to_ns).ps(), 0);
}

// Bytes pass a link of some bandwidth and latency under the project's own rules. The delay is the exact sum, rounded up
// to a picosecond.
TEST(Delay, OfATransferIsRoundedUp) {
  EXPECT_EQ(delay(0, Bytes(3), rate(0.3), Rounding::up_to_ps).ps(), 10'000);        // exact although 0.3 is not
  EXPECT_EQ(delay(0, Bytes(1), rate(3), Rounding::up_to_ps).ps(), 334);             // 333.3
  EXPECT_EQ(delay(500, Bytes(1000), rate(300), Rounding::up_to_ps).ps(), 503'334);  // 500 ns + 3333.3 ps
  EXPECT_EQ(delay(0, Bytes(1), rate(2000), Rounding::up_to_ps).ps(), 1);            // half a picosecond
  EXPECT_EQ(delay(7, Bytes(0), rate(50), Rounding::up_to_ps).ps(), 7000);
}

// Bytes pass a link under ASTRA-sim's rules. Latency and transfer are added first, and the sum is cut to whole
// nanoseconds once.
TEST(Delay, OfAstraSimIsTheSumCutOnce) {
  EXPECT_EQ(delay(0.6, Bytes(60), rate(100), Rounding::down_to_ns).ps(), 1000);  // 0.6 + 0.6 ns; each alone would be 0
  EXPECT_EQ(delay(500, Bytes(1000), rate(300), Rounding::down_to_ns).ps(), 503'000);
  EXPECT_EQ(delay(0, Bytes(99), rate(100), Rounding::down_to_ns).ps(), 0);
}

// Transfers and durations are longer than Time can hold. They take never, and the longest that fit are exact.
TEST(Delay, IsNeverWhereItDoesNotFit) {
  constexpr double longest = 9.2e15;  // ns
  for (const auto rounding : {Rounding::up_to_ps, Rounding::down_to_ns}) {
    EXPECT_EQ(delay(0, Bytes(~std::uint64_t{0}), rate(1e-3), rounding), Time::max());
    EXPECT_EQ(delay(0, Bytes(std::uint64_t{1} << 62U), rate(1), rounding), Time::max());
    EXPECT_EQ(delay(longest, Bytes(1'000'000'000'000'000), rate(1), rounding), Time::max());
    EXPECT_EQ(delay(1e16, Bytes(0), rate(1), rounding), Time::max());
    EXPECT_EQ(delay(0, Bytes(1), rate(1e-30), rounding), Time::max());
    EXPECT_EQ(duration_from_ns(1e16, rounding), Time::max());
    EXPECT_EQ(duration_from_ns(longest, rounding).ps(), 9'200'000'000'000'000'000);
    EXPECT_EQ(delay(0, Bytes(9'200'000'000'000'000), rate(1), rounding).ps(), 9'200'000'000'000'000'000);
  }
}

// A rate is far too small, or far too large, for a whole number of 64 bits. The delay is right all the same.
TEST(Delay, OfRatesThatAreNoWholeNumberOf64Bits) {
  EXPECT_EQ(delay(0, Bytes(1), rate(1e-10), Rounding::up_to_ps), Time::from_ns(10'000'000'000));
  EXPECT_EQ(delay(0, Bytes(1), rate(1e12), Rounding::up_to_ps), Time::from_ps(1));
}

// No delay follows from a rate of zero or less, or from a negative latency or duration. They throw an error.
TEST(Delay, RefusesWhatIsNoDelay) {
  for (const auto rounding : {Rounding::up_to_ps, Rounding::down_to_ns}) {
    EXPECT_THROW(delay(0, Bytes(1), rate(0), rounding), Error);
    EXPECT_THROW(delay(0, Bytes(1), rate(-1), rounding), Error);
    EXPECT_THROW(delay(-1, Bytes(0), rate(1), rounding), Error);
    EXPECT_THROW(duration_from_ns(-1, rounding), Error);
  }
}

// Sizes in bytes are added, subtracted, multiplied and divided. The results are those of whole numbers, and a division
// rounds down.
TEST(Bytes, AddAndMultiply) {
  Bytes bytes(5);
  bytes += Bytes(7);
  EXPECT_EQ((bytes * 3).count(), 36U);
  EXPECT_EQ((bytes - Bytes(2)).count(), 10U);
  EXPECT_EQ((Bytes(11) / 4).count(), 2U);
}

// Sums and products of sizes go beyond Bytes::most(). The results stay beyond it, so that an overrun is never lost.
TEST(Bytes, WhatDoesNotFitIsMoreThanTheMost) {
  const Bytes half = Bytes::most() + Bytes(1);
  EXPECT_GT(half, Bytes::most());
  EXPECT_GT(half + half, Bytes::most());
  EXPECT_GT(half * 2, Bytes::most());
}

}  // namespace
}  // namespace orrery
