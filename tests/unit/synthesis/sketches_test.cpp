#include "sketches.hpp"

#include <gtest/gtest.h>

#include <random>

#include "scaled.hpp"
#include "sizes.hpp"

namespace orrery::synthesis {
namespace {

SizeSample sample(std::uint64_t bytes, std::uint64_t support) { return {{.bytes = bytes}, support}; }

double mean_bytes(const Sketch& sketch) {
  double mean = 0;
  for (const SketchPoint& point : sketch.points) mean += point.weight * point.bytes;
  return mean;
}

/// Two sizes of a slot are two points, with the shares of the nodes that have them.
TEST(Sketches, FewSizesAreKeptExactly) {
  const Sketch sketch = sketch_of({sample(100, 3), sample(500, 1), sample(100, 4)});
  ASSERT_EQ(sketch.points.size(), 2);
  EXPECT_DOUBLE_EQ(sketch.points[0].bytes, 100);
  EXPECT_DOUBLE_EQ(sketch.points[0].weight, 7.0 / 8);
  EXPECT_DOUBLE_EQ(sketch.points[1].bytes, 500);
}

/// Five nodes or more stand behind each point: of 8, 1, 5 and 3 nodes there are two points.
TEST(Sketches, EachPointStandsForEnoughNodes) {
  const Sketch sketch = sketch_of({sample(100, 8), sample(200, 1), sample(300, 5), sample(400, 3)}, 5);
  ASSERT_EQ(sketch.points.size(), 2);
  EXPECT_DOUBLE_EQ(sketch.points[0].bytes, 100);
  EXPECT_DOUBLE_EQ(sketch.points[1].bytes, (200.0 + 5 * 300 + 3 * 400) / 9);
}

/// 1000 random sizes become at most 16 points, whose weighted mean is that of the sizes.
TEST(Sketches, ManySizesKeepTheirMean) {
  std::mt19937 random(3);
  std::vector<SizeSample> samples;
  double sum = 0, weight = 0;
  for (int i = 0; i < 1000; ++i) {
    samples.push_back(sample(1 + random() % 100000, 1 + random() % 9));
    sum += static_cast<double>(samples.back().sizes.bytes * samples.back().support);
    weight += static_cast<double>(samples.back().support);
  }
  const Sketch sketch = sketch_of(samples);
  EXPECT_LE(sketch.points.size(), Sketch::most_points);
  EXPECT_GT(sketch.points.size(), 8);
  EXPECT_NEAR(mean_bytes(sketch), sum / weight, 1e-6 * sum / weight);
}

/// Of four slots, the one with a support of 2 is merged with the nearest of its family; the only slot of a family
/// stays.
TEST(Sketches, SlotsWithoutSupportAreMergedWithTheNearest) {
  const std::vector<SlotSizes> slots{
      {0, {sample(100, 8)}}, {0, {sample(1000, 8)}}, {0, {sample(900, 2)}}, {1, {sample(900, 2)}}};
  const Sketches sketches = sketch_slots(slots, 5);
  EXPECT_EQ(sketches.of_slot[2], sketches.of_slot[1]);
  EXPECT_NE(sketches.of_slot[0], sketches.of_slot[1]);
  EXPECT_NE(sketches.of_slot[3], sketches.of_slot[2]);  // of another family, which has no other slot
  EXPECT_EQ(sketches.merged, 2);
  EXPECT_EQ(sketch_slots(slots, 1).merged, 0);
}

/// Sizes below 1000 stay as they are; larger ones keep three digits.
TEST(Sizes, AreRoundedToThreeDigits) {
  EXPECT_DOUBLE_EQ(to_three_digits(7), 7);
  EXPECT_DOUBLE_EQ(to_three_digits(123456), 123000);
  EXPECT_DOUBLE_EQ(to_three_digits(16777216), 16800000);
}

/// A loop of 4 iterations that gets 7 repeats its middle; one of 6 that gets 3 keeps its first two and its last.
TEST(Scaled, LoopsKeepTheirEnds) {
  std::vector<std::uint32_t> sources;
  for (std::uint32_t i = 0; i < 7; ++i) sources.push_back(source_of(i, 7, 4));
  EXPECT_EQ(sources, (std::vector<std::uint32_t>{0, 1, 2, 2, 2, 2, 3}));
  sources.clear();
  for (std::uint32_t i = 0; i < 3; ++i) sources.push_back(source_of(i, 3, 6));
  EXPECT_EQ(sources, (std::vector<std::uint32_t>{0, 1, 5}));
}

}  // namespace
}  // namespace orrery::synthesis
