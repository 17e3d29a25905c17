#include "orrery/base/distribution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "orrery/base/variations.hpp"

namespace orrery {
namespace {

using Kind = DistributionKind;

/// The mean and the standard deviation of a distribution, from quantiles at the middles of many equal shares.
struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments_of(const Distribution& distribution) {
  constexpr int shares = 400000;
  double sum = 0, squares = 0;
  for (int i = 0; i < shares; ++i) {
    const double factor = distribution.quantile((i + 0.5) / shares);
    sum += factor;
    squares += factor * factor;
  }
  const double mean = sum / shares;
  return {mean, std::sqrt(std::max(0.0, squares / shares - mean * mean))};
}

std::vector<Distribution> one_of_each_kind() {
  return {{.kind = Kind::uniform, .least = 0.9, .most = 1.3},
          {.kind = Kind::normal, .least = 0.8, .most = 1.4, .mean = 1.05, .deviation = 0.1},
          {.kind = Kind::lognormal, .least = 0.7, .most = 2, .median = 1.1, .deviation = 0.2},
          {.kind = Kind::tail, .probability = 0.1, .factor = 1.5},
          {.kind = Kind::exponential, .most = 3, .probability = 0.4, .excess = 0.2},
          {.kind = Kind::values, .values = {0.95, 1, 1, 1.2}}};
}

// The quantiles of the normal distribution are inverse to its distribution function, which the C library has.
TEST(Distribution, NormalQuantilesAreInverseToErfc) {
  for (const double p : {1e-300, 1e-40, 1e-12, 1e-5, 0.01, 0.07, 0.08, 0.3, 0.5, 0.7, 0.92, 0.93, 0.99, 1 - 1e-9}) {
    const double back = 0.5 * std::erfc(-normal_quantile(p) * std::sqrt(0.5));
    EXPECT_NEAR(back / p, 1, 1e-11) << p;
  }
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-14);
}

// Means and deviations are those of textbooks.
TEST(Distribution, MomentsAreThoseOfTheKind) {
  const auto uniform = moments_of({.kind = Kind::uniform, .least = 0.8, .most = 1.4});
  EXPECT_NEAR(uniform.mean, 1.1, 1e-6);
  EXPECT_NEAR(uniform.deviation, 0.6 / std::sqrt(12), 1e-6);
  const auto normal = moments_of({.kind = Kind::normal, .mean = 1.05, .deviation = 0.05});
  EXPECT_NEAR(normal.mean, 1.05, 1e-6);
  EXPECT_NEAR(normal.deviation, 0.05, 1e-5);
  // Cut off at the mean: half of a normal distribution, with the mean deviation * sqrt(2 / pi) above.
  const auto half = moments_of({.kind = Kind::normal, .least = 1, .mean = 1, .deviation = 0.1});
  EXPECT_NEAR(half.mean, 1 + 0.1 * std::sqrt(2 / 3.14159265358979), 1e-5);
  const auto lognormal = moments_of({.kind = Kind::lognormal, .least = 0.01, .median = 1.1, .deviation = 0.2});
  EXPECT_NEAR(lognormal.mean, 1.1 * std::exp(0.02), 1e-5);
  EXPECT_NEAR(lognormal.deviation, 1.1 * std::exp(0.02) * std::sqrt(std::expm1(0.04)), 1e-4);
  const auto tail = moments_of({.kind = Kind::tail, .probability = 0.1, .factor = 1.5});
  EXPECT_NEAR(tail.mean, 1.05, 1e-5);
  const auto exponential = moments_of({.kind = Kind::exponential, .probability = 0.4, .excess = 0.2});
  EXPECT_NEAR(exponential.mean, 1.08, 1e-4);
  // Of an exponential with the mean 1 that is cut off at 1, the mean is 1 - 1 / (e - 1).
  const auto cut = moments_of({.kind = Kind::exponential, .most = 1.2, .excess = 0.2});
  EXPECT_NEAR(cut.mean, 1 + 0.2 * (1 - 1 / std::expm1(1)), 1e-5);
  EXPECT_NEAR(moments_of({.kind = Kind::values, .values = {0.9, 1, 1.2}}).mean, 3.1 / 3, 1e-5);
}

// No draw is below the least factor, which is exact for lookahead, and quantiles do not fall.
TEST(Distribution, QuantilesAscendFromTheLowest) {
  for (const Distribution& distribution : one_of_each_kind()) {
    double before = distribution.lowest();
    EXPECT_GT(before, 0);
    for (int i = 0; i <= 1000; ++i) {
      const double u = i < 1000 ? i / 1000.0 : 1 - 0x1p-53;
      const double factor = distribution.quantile(u);
      EXPECT_GE(factor, before) << static_cast<int>(distribution.kind) << " at " << u;
      before = factor;
    }
    EXPECT_LE(before, distribution.kind == Kind::values || distribution.kind == Kind::tail ? 1.5 : distribution.most);
  }
}

// Cut off far in a tail, where no probability is left in doubles, a draw stays within its bounds.
TEST(Distribution, BoundsHoldFarOut) {
  const Distribution far{.kind = Kind::normal, .least = 3, .most = 4, .mean = 3, .deviation = 1e-6};
  for (const double u : {0.0, 0.5, 1 - 0x1p-53}) {
    EXPECT_GE(far.quantile(u), 3);
    EXPECT_LE(far.quantile(u), 4);
  }
}

Variations with(std::vector<Variation> all, std::uint32_t seed = 1) {
  Variations variations;
  for (auto& variation : all) variations.add(std::move(variation));
  variations.seed = seed;
  return variations;
}

// A draw is the same each time, and another one for each seed, entry and word of the key.
TEST(Variations, ADrawFollowsFromItsKey) {
  const Distribution wide{.kind = Kind::uniform, .least = 0.5, .most = 2};
  const auto one = with({{DrawnPer::node, 8, wide}});
  const DrawKey key{3, 5, 7};
  EXPECT_EQ(one.factor(DrawnPer::node, key), with({{DrawnPer::node, 8, wide}}).factor(DrawnPer::node, key));
  EXPECT_NE(one.factor(DrawnPer::node, key), with({{DrawnPer::node, 8, wide}}, 2).factor(DrawnPer::node, key));
  for (const DrawKey& other : {DrawKey{4, 5, 7}, DrawKey{3, 4, 7}, DrawKey{3, 5, 8}, DrawKey{5, 3, 7}})
    EXPECT_NE(one.factor(DrawnPer::node, key), one.factor(DrawnPer::node, other));
  const auto second = with({{DrawnPer::step, 8, {.kind = Kind::tail}}, {DrawnPer::node, 8, wide}});
  EXPECT_NE(one.factor(DrawnPer::node, key), second.factor(DrawnPer::node, key));
}

// The NPUs of a machine have one factor. What is drawn for nothing is 1.
TEST(Variations, MachinesAreDrawnOnce) {
  const auto machines = with({{DrawnPer::machine, 4, {.kind = Kind::uniform, .least = 0.5, .most = 2}}});
  for (std::uint64_t npu = 0; npu < 16; ++npu)
    EXPECT_EQ(machines.factor(DrawnPer::machine, {npu}), machines.factor(DrawnPer::machine, {npu / 4 * 4}));
  EXPECT_NE(machines.factor(DrawnPer::machine, {0}), machines.factor(DrawnPer::machine, {4}));
  EXPECT_EQ(machines.factor(DrawnPer::npu, {0}), 1);
  EXPECT_EQ(machines.lowest(DrawnPer::npu), 1);
  EXPECT_FALSE(machines.has(DrawnPer::npu));
}

// Entries for the same multiply, and so do their least factors.
TEST(Variations, EntriesMultiply) {
  const auto both = with({{DrawnPer::npu, 8, {.kind = Kind::tail, .factor = 1.5}},
                          {DrawnPer::npu, 8, {.kind = Kind::tail, .factor = 0.5}}});
  EXPECT_EQ(both.factor(DrawnPer::npu, {7}), 0.75);
  EXPECT_EQ(both.lowest(DrawnPer::npu), 0.75);
}

// 0.5 % of many machines are slow, as drawn.
TEST(Variations, TheShareOfSlowMachinesIsTheProbability) {
  const auto rare = with({{DrawnPer::machine, 1, {.kind = Kind::tail, .probability = 0.005, .factor = 1.1}}});
  int slow = 0;
  constexpr int machines = 200000;
  for (std::uint64_t machine = 0; machine < machines; ++machine) slow += rare.factor(DrawnPer::machine, {machine}) > 1;
  EXPECT_NEAR(slow, machines * 0.005, 4 * std::sqrt(machines * 0.005));
}

}  // namespace
}  // namespace orrery
