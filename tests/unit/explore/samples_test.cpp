#include "orrery/explore/samples.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace orrery::explore {
namespace {

Parameter sampled_parameter(const std::string& name, std::vector<std::string> values) {
  Parameter result;
  result.name = name;
  result.values = std::move(values);
  return result;
}

/// A study of a bandwidth from 10 to 1000 GB/s on a logarithmic scale, and of n = 1, ..., 8.
Study two_parameters(Strategy strategy, std::uint32_t samples) {
  Study study;
  study.parameters = {sampled_parameter("bandwidth", {}),
                      sampled_parameter("n", {"1", "2", "3", "4", "5", "6", "7", "8"})};
  study.parameters[0].interval = Interval{10, 1000, " GB/s", true};
  study.strategy = strategy;
  study.sampling.samples = samples;
  return study;
}

constexpr Strategy sampled[] = {Strategy::random, Strategy::latin_hypercube, Strategy::sobol};

// What a draw gives does not depend on those that were made before it, but on the seed.
TEST(Sequence, DrawsFollowFromTheirNumber) {
  for (const Strategy strategy : sampled) {
    const auto one = make_sequence(strategy, {.samples = 8, .seed = 3}, 4);
    const auto other = make_sequence(strategy, {.samples = 8, .seed = 3}, 4);
    std::vector<std::vector<double>> in_order;
    for (std::uint64_t i = 0; i < 30; ++i) in_order.push_back(one->draw(i));
    for (const std::uint64_t i : {29, 0, 7, 8, 15, 1}) EXPECT_EQ(other->draw(i), in_order[i]) << name(strategy);
    EXPECT_NE(make_sequence(strategy, {.samples = 8, .seed = 4}, 4)->draw(5), in_order[5]) << name(strategy);
    for (const auto& draw : in_order)
      for (const double number : draw) EXPECT_TRUE(number >= 0 && number < 1);
  }
}

// Each block of a Latin hypercube has one draw in each part of each dimension.
TEST(Sequence, LatinHypercubeHasOneInEachPart) {
  const auto sequence = make_sequence(Strategy::latin_hypercube, {.samples = 10, .seed = 1}, 3);
  std::vector<std::vector<int>> orders;
  for (std::uint64_t block = 0; block < 2; ++block)
    for (std::size_t dimension = 0; dimension < 3; ++dimension) {
      auto& order = orders.emplace_back();
      for (std::uint64_t i = 0; i < 10; ++i)
        order.push_back(static_cast<int>(sequence->draw(10 * block + i)[dimension] * 10));
      EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 10);
    }
  EXPECT_EQ(std::set(orders.begin(), orders.end()).size(), 6);
}

// The first 2^m points of a scrambled Sobol sequence have one in each of 2^m equal parts of each dimension, and the
// first two dimensions one in each of 2^a times 2^(m - a) boxes. So have the next 2^m points.
TEST(Sequence, SobolFillsBoxesEvenly) {
  const auto sequence = make_sequence(Strategy::sobol, {.seed = 7}, 12);
  for (std::uint64_t block = 0; block < 2; ++block) {
    std::vector<std::vector<double>> points;
    for (std::uint64_t i = 0; i < 64; ++i) points.push_back(sequence->draw(64 * block + i));
    for (std::size_t dimension = 0; dimension < 12; ++dimension) {
      std::set<int> parts;
      for (const auto& point : points) parts.insert(static_cast<int>(point[dimension] * 64));
      EXPECT_EQ(parts.size(), 64) << dimension;
    }
    for (const int across : {2, 4, 8, 16, 32}) {
      std::set<std::pair<int, int>> boxes;
      for (const auto& point : points)
        boxes.emplace(static_cast<int>(point[0] * across), static_cast<int>(point[1] * (64.0 / across)));
      EXPECT_EQ(boxes.size(), 64) << across;
    }
  }
}

// Samples are legal and distinct. What a constraint cuts is counted, and others take its place. Two samplers draw
// alike.
TEST(Sampler, DrawsLegalPoints) {
  for (const Strategy strategy : sampled) {
    Study study = two_parameters(strategy, 64);
    study.constraints = {Expression::parse("n % 2 == 0", {}), Expression::parse("bandwidth < 500 GB/s", {})};
    Space space(study, {}), again(study, {});
    Points points(space), same(again);
    Funnel funnel, other;
    Sampler(space).draw(points, funnel);
    Sampler(again).draw(same, other);
    ASSERT_EQ(points.size(), 64);
    EXPECT_EQ(funnel.legal, 64);
    EXPECT_EQ(funnel.raw, funnel.legal + funnel.alike + funnel.cut[0] + funnel.cut[1]);
    EXPECT_GT(funnel.cut[0], 30);
    double below_100 = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Point point = points[i];
      EXPECT_EQ(point.number, i);
      EXPECT_EQ(point.names, same[i].names);
      const double bandwidth = as_real(point.names.at("bandwidth"));
      EXPECT_TRUE(bandwidth >= 10e9 && bandwidth < 500e9) << bandwidth;
      below_100 += bandwidth < 100e9 ? 1 : 0;
    }
    EXPECT_NEAR(below_100 / 64, 1 / 1.7, 0.12) << name(strategy);  // of log10(50) of a range
  }
}

// Where constraints cut 1000 draws in a row, the error counts them. Where all legal points are drawn, there are no
// more.
TEST(Sampler, EndsWhereNothingIsLegal) {
  Study study = two_parameters(Strategy::random, 20);
  study.constraints = {Expression::parse("n > 8", {}), Expression::parse("n < 0", {})};
  Space space(study, {});
  Points points(space);
  Funnel funnel;
  try {
    Sampler(space).draw(points, funnel);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("1000 draws in a row are not legal: 1000 by n > 8"), std::string::npos)
        << error.what();
  }
  Study few;
  few.parameters = {sampled_parameter("n", {"1", "2", "3"}), sampled_parameter("m", {"1", "2"})};
  few.strategy = Strategy::sobol;
  Space small(few, {});
  Points all(small);
  Funnel counts;
  Sampler(small).draw(all, counts);
  EXPECT_EQ(all.size(), 6);
  EXPECT_EQ(counts.legal, 6);
  EXPECT_EQ(counts.raw, 6 + counts.alike);
}

// Further rounds draw within a region around given points that shrinks.
TEST(Sampler, RefinesAroundPoints) {
  Study study = two_parameters(Strategy::sobol, 32);
  study.sampling.factor = 4;
  Space space(study, {});
  Points points(space);
  Funnel funnel;
  Sampler sampler(space);
  sampler.draw(points, funnel);
  const double center = as_real(points[3].names.at("bandwidth"));
  const std::size_t around[] = {3};
  for (std::uint32_t round = 1; round <= 2; ++round) {
    const std::size_t first = points.size();
    sampler.refine(round, around, points, funnel);
    ASSERT_EQ(points.size(), first + 32);
    const double widest = std::pow(100, 0.5 / std::pow(4, round)) * 1.001;  // half the region, as a ratio
    for (std::size_t i = first; i < points.size(); ++i) {
      const double ratio = as_real(points[i].names.at("bandwidth")) / center;
      EXPECT_TRUE(ratio <= widest && ratio >= 1 / widest) << ratio;
    }
  }
}

}  // namespace
}  // namespace orrery::explore
