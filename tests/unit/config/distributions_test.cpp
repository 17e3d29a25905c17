#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "expect_error.hpp"
#include "orrery/config/read.hpp"
#include "temporary_folder.hpp"

namespace orrery::config {
namespace {

/// 8 NPUs with distributions.
Configuration with_distributions(const std::string& list, const std::filesystem::path& folder = "/base") {
  return parse(
      "system:\n  network:\n    dimensions: [{shape: Ring, size: 8, bandwidth: 100 GB/s, latency: 100 ns}]\n"
      "workload: {traces: data/workload}\nperturbation: {distributions: " +
          list + "}\n",
      "c.yaml", folder);
}

void refused_distributions(const std::string& list, std::initializer_list<std::string_view> parts) {
  expect_error([&] { with_distributions(list); }, ErrorCode::bad_input, parts);
}

// Each kind has keys of its own. The resolved configuration reads back equal.
TEST(Distributions, AllKindsReadBackEqual) {
  const auto c = with_distributions(
      "[{per: machine, machine-size: 4, kind: tail, probability: 0.5, factor: 2},"
      " {per: npu, kind: normal, deviation: 0.02}, {per: step, kind: exponential, excess: 0.1, most: 2},"
      " {per: node, kind: uniform, least: 0.9, most: 1.1}, {per: collective, kind: lognormal, deviation: 0.1},"
      " {per: message, kind: values, values: [1.5, 1, 1]}]");
  const auto all = c.execution.noise.variations.all();
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0].machine_size, 4U);
  EXPECT_EQ(all[1].distribution.least, 0.5);
  EXPECT_EQ(all[4].distribution.least, 1);
  EXPECT_EQ(all[5].distribution.values, (std::vector<double>{1, 1, 1.5}));
  EXPECT_TRUE(parse(c.to_yaml(), "resolved.yaml", "/elsewhere") == c) << c.to_yaml();
}

// What is drawn once for machines and NPUs is in their compute speeds. Another seed draws other speeds.
TEST(Distributions, SpeedsAreDrawnOnce) {
  auto c = with_distributions("[{per: machine, machine-size: 4, kind: uniform, least: 0.5, most: 2}]");
  const auto speeds = c.execution.compute_speed;
  ASSERT_EQ(speeds.size(), 8U);
  EXPECT_EQ(speeds[0], speeds[3]);
  EXPECT_NE(speeds[0], speeds[4]);
  EXPECT_EQ(speeds[4], 1 / c.execution.noise.variations.factor(DrawnPer::machine, {4}));
  c.draw_with(2);
  EXPECT_EQ(c.execution.noise.seed, 2U);
  EXPECT_NE(c.execution.compute_speed, speeds);
  c.draw_with(1);
  EXPECT_EQ(c.execution.compute_speed, speeds);
}

// Measured factors come from a list or a file, in any order.
TEST(Distributions, MeasuredFactorsFromAFile) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "factors.txt") << "# measured\n1.2\n\n0.9\n1\n";
  const auto c = with_distributions("[{per: npu, kind: values, values: factors.txt}]", folder.path());
  EXPECT_EQ(c.execution.noise.variations.all()[0].distribution.values, (std::vector<double>{0.9, 1, 1.2}));
  EXPECT_EQ(c.inputs.back().first, "factors.txt");
  std::ofstream(folder.path() / "factors.txt") << "1\n0\n";
  expect_error([&] { with_distributions("[{per: npu, kind: values, values: factors.txt}]", folder.path()); },
               ErrorCode::bad_input, {"factors.txt:2", "1e-6 to 1e6"});
  std::ofstream(folder.path() / "factors.txt") << "# nothing\n";
  expect_error([&] { with_distributions("[{per: npu, kind: values, values: factors.txt}]", folder.path()); },
               ErrorCode::bad_input, {"c.yaml:5", "no factor"});
}

// Keys that a kind does not have, bounds that cross, and factors below 1 of the network are refused.
TEST(Distributions, WrongOnesAreRefused) {
  refused_distributions("[{kind: tail, factor: 2}]", {"distributions.0.per", "machine, npu, step"});
  refused_distributions("[{per: npu, kind: gamma}]", {"distributions.0.kind", "gamma", "lognormal"});
  refused_distributions("[{per: npu, kind: tail}]", {"distributions.0.factor", "the kind is tail"});
  refused_distributions("[{per: npu, kind: normal, deviation: 0.1, factor: 2}]",
                        {"distributions.0.factor", "kind: tail"});
  refused_distributions("[{per: npu, machine-size: 4, kind: tail, factor: 2}]", {"machine-size", "per: machine"});
  refused_distributions("[{per: npu, kind: uniform, most: 2}]", {"distributions.0.least", "uniform"});
  refused_distributions("[{per: npu, kind: uniform, least: 2, most: 1}]",
                        {"distributions.0.most", "found 1", "2 or more"});
  refused_distributions("[{per: npu, kind: normal, mean: 3, most: 2, deviation: 1}]",
                        {"distributions.0.mean", "found 3"});
  refused_distributions("[{per: npu, kind: tail, factor: 2, probability: 1.5}]", {"probability", "0 to 1"});
  refused_distributions("[{per: collective, kind: uniform, least: 0.9, most: 2}]",
                        {"distributions.0", "down to 0.9 per collective"});
  refused_distributions("[{per: message, kind: values, values: [0.5, 2]}]", {"down to 0.5 per message", "1 or more"});
}

// The links of the congestion-aware network make times of their own.
TEST(Distributions, TheCongestionAwareNetworkHasNone) {
  for (const std::string per : {"collective", "message"})
    expect_error(
        [&] {
          parse(
              "system:\n  network:\n    model: congestion-aware\n"
              "    dimensions: [{shape: Ring, size: 8, bandwidth: 100 GB/s, latency: 100 ns}]\n"
              "workload: {traces: data/workload}\n"
              "perturbation: {distributions: [{per: " +
                  per + ", kind: tail, factor: 2}]}\n",
              "c.yaml", "/base");
        },
        ErrorCode::bad_input, {"c.yaml:6", "perturbation.distributions", "per " + per, "congestion-unaware"});
}

}  // namespace
}  // namespace orrery::config
