#include "orrery/base/divisor.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace orrery {
namespace {

// Quotients and remainders are those of a division, for small, odd and large divisors, at multiples and next to them.
TEST(Divisor, DividesAsADivisionDoes) {
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  for (const std::uint32_t by : {1U, 2U, 3U, 7U, 8U, 641U, 65'536U, 16'777'213U, 2'147'483'648U, most - 1, most}) {
    const Divisor divisor(by);
    EXPECT_EQ(divisor.value(), by);
    for (std::uint64_t multiple = 0; multiple <= most; multiple += std::uint64_t{by} * (most / by / 1000 + 1)) {
      for (const std::int64_t beside : {-1, 0, 1}) {
        const std::int64_t wide = static_cast<std::int64_t>(multiple) + beside;
        if (wide < 0 || wide > std::int64_t{most}) continue;
        const auto number = static_cast<std::uint32_t>(wide);
        ASSERT_EQ(divisor.quotient(number), number / by) << number << " by " << by;
        ASSERT_EQ(divisor.remainder(number), number % by) << number << " by " << by;
      }
    }
  }
}

}  // namespace
}  // namespace orrery
