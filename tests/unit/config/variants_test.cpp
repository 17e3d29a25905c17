// Configurations that are read as variants of one file are those that are read alone: values, places, warnings, inputs,
// and what the refusal of a faulty one says.
#include "orrery/config/variants.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/config/read.hpp"
#include "temporary_folder.hpp"

namespace orrery::config {
namespace {

constexpr const char* text =
    "system:\n"
    "  network: {dimensions: [{shape: Switch, size: 8, bandwidth: 50 GB/s, latency: 1 us}]}\n"
    "  compute: {model: products, peak: {bf16: 300 TFLOPS, fp8: 600 TFLOPS}, local-memory: {bandwidth: 2000 GB/s}}\n"
    "workload:\n"
    "  model: {layers: 8, hidden: 1024, heads: 8, sequence: 1024}\n"
    "  parallel: {dp: 8, zero: 1}\n";

using Settings = std::vector<std::string>;

class VariantsOfOneFile : public testing::Test {
 protected:
  void SetUp() override { std::ofstream(path_) << text; }

  /// Reads in both ways and compares.
  void compare(Variants& variants, const Settings& common, const Settings& settings) {
    SCOPED_TRACE(testing::PrintToString(settings));
    Settings all = common;
    all.insert(all.end(), settings.begin(), settings.end());
    std::string refusal, refusal_of_variant;
    std::optional<Configuration> alone, variant;
    try {
      alone = read({.file = path_, .overrides = all});
    } catch (const Error& error) {
      refusal = error.what();
    }
    try {
      variant = variants.read(settings);
    } catch (const Error& error) {
      refusal_of_variant = error.what();
    }
    EXPECT_EQ(refusal_of_variant, refusal);
    ASSERT_EQ(variant.has_value(), alone.has_value());
    if (!alone) return;
    EXPECT_TRUE(*variant == *alone);
    EXPECT_EQ(variant->to_yaml(), alone->to_yaml());
    EXPECT_EQ(variant->warnings, alone->warnings);
    EXPECT_EQ(variant->inputs, alone->inputs);
    EXPECT_EQ(variant->execution.compute.peak_flops, alone->execution.compute.peak_flops);
    ASSERT_EQ(variant->places.size(), alone->places.size());
    for (const auto& [key, place] : alone->places) {
      const Place& other = variant->places.at(key);
      EXPECT_EQ(other.file, place.file);
      EXPECT_EQ(other.line, place.line);
      EXPECT_EQ(other.key, place.key);
    }
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "base.yaml";
};

TEST_F(VariantsOfOneFile, AreWhatIsReadAlone) {
  const Settings common = {"workload.parallel.sp=false", "system.compute.efficiency=0.5"};
  Variants variants({.file = path_, .overrides = common});
  const std::vector<Settings> all = {
      {},
      {"workload.parallel.tp=2", "workload.parallel.dp=4"},
      {"workload.parallel.tp=4", "workload.parallel.dp=2", "workload.parallel.sp=true"},
      {"workload.parallel.tp=2", "workload.parallel.dp=4"},
      {"workload.parallel.pp=2", "workload.parallel.dp=4"},
      {"workload.parallel.precision=fp8"},
      {"workload.parallel.global-batch=64"},
      {"workload.parallel.micro-batches=4", "workload.parallel.global-batch=64"},
      {"workload.parallel.placement=[dp, tp, cp, ep, pp]"},
      {"system.network.dimensions.0.bandwidth=100 GB/s", "workload.parallel.dp=8"},
      {"system.network.dimensions.0.bandwidth=100 GB/s", "workload.parallel.dp=4", "workload.parallel.tp=2"},
      {"workload.parallel.tp=2", "workload.model.layers=4", "workload.parallel.dp=4"},
      {"workload.parallel={tp: 4, dp: 2}", "workload.parallel.zero=0"},
      {"workload={model: {layers: 4, hidden: 512, heads: 8, sequence: 128}}", "workload.parallel.dp=8"},
      {"workload.streams=counted", "workload.parallel.zero=3"},
      {"workload.parallel.zero=3"},
  };
  for (const Settings& settings : all) compare(variants, common, settings);
}

TEST_F(VariantsOfOneFile, RefuseWhatIsRefusedAlone) {
  Variants variants({.file = path_});
  const std::vector<Settings> all = {
      {"workload.parallel.tp=3"},
      {"workload.parallel.dp=4"},
      {"workload.parallel.tpp=4"},
      {"workload.parallel.zero=[1]"},
      {"workload.parallel.zero={a: 1, a: 1}"},
      {"workload.parallel.zero"},
      {"workload.parallel.=1"},
      {"workload.parallel.tp="},
      {"workload.parallel.tp=[", "workload.parallel.dp=4"},
      {"workload.parallel.placement.0=dp"},
      {"system.compute.peak=fast", "workload.parallel.dp=9"},
      {"workload.model=3"},
      {"workload.parallel=3", "workload.parallel.dp=8"},
  };
  for (const Settings& settings : all) compare(variants, {}, settings);
  compare(variants, {}, {"workload.parallel.dp=8"});
}

}  // namespace
}  // namespace orrery::config
