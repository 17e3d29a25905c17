#include "orrery/network/known_delays.hpp"

#include <gtest/gtest.h>

namespace orrery::network {
namespace {

// Each kind has delays of its own, and each size too, however many sizes come. What came last is not found again.
TEST(KnownDelays, AreThoseOfTheKindAndTheSize) {
  KnownDelays known;
  known.add_kind();
  known.add_kind();
  int found = 0;
  const auto of = [&](std::uint32_t kind, std::uint64_t size) {
    const auto delays = known.of(kind, Bytes(size), [&] {
      ++found;
      const auto ps = static_cast<std::int64_t>(size + kind * 1'000'000);
      return KnownDelays::Delays{Time::from_ps(ps), Time::from_ps(ps + 7)};
    });
    EXPECT_EQ(delays.holds, Time::from_ps(static_cast<std::int64_t>(size + kind * 1'000'000)));
    EXPECT_EQ(delays.passes, delays.holds + Time::from_ps(7));
  };
  for (int round = 0; round < 2; ++round)
    for (std::uint64_t size = 0; size < 300; ++size)
      for (const std::uint32_t kind : {0U, 1U}) of(kind, size);
  EXPECT_GE(found, 600);
  found = 0;
  for (int again = 0; again < 5; ++again) of(1, 4096);
  of(0, 4096);
  EXPECT_EQ(found, 2);
}

}  // namespace
}  // namespace orrery::network
