#include "orrery/run/simulate.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "mpi_world.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/config/read.hpp"
#include "temporary_folder.hpp"

namespace orrery::run {
namespace {

using orrery::test::me;
using orrery::test::world;

/// A step of a small transformer on 4 NPUs of a switch, whose sums take time in proportion to 1 / bandwidth.
config::Configuration step(const std::string& bandwidth) {
  return config::parse(
      "system:\n"
      "  network: {dimensions: [{shape: Switch, size: 4, bandwidth: " +
          bandwidth +
          ", latency: 1 us}]}\n"
          "  compute: {roofline: true, peak: 100 TFLOPS, local-memory: {bandwidth: 1000 GB/s}}\n"
          "workload:\n"
          "  model: {layers: 2, hidden: 256, heads: 4, sequence: 128}\n"
          "  parallel: {dp: 4}\n",
      "test.yaml");
}

// Three simulations follow each other: the results are those of the configuration alone, and equal on all ranks.
TEST(Simulate, RunsOneAfterTheOther) {
  const RunResults first = simulate(step("10 GB/s"), world());
  const RunResults other = simulate(step("40 GB/s"), world());
  const RunResults again = simulate(step("10 GB/s"), world());
  ASSERT_EQ(first.finish_times.size(), 4U);
  EXPECT_EQ(again.finish_times, first.finish_times);
  EXPECT_LT(other.simulated_time, first.simulated_time);
  ASSERT_TRUE(first.metrics && again.metrics);
  EXPECT_EQ(first.metrics->step_time, first.simulated_time);
  EXPECT_EQ(again.metrics->bytes_per_step, first.metrics->bytes_per_step);
  EXPECT_EQ(again.metrics->training.tokens_per_second, first.metrics->training.tokens_per_second);
  std::vector<std::int64_t> least{first.simulated_time.ps()}, most = least;
  world().minimum(least);
  world().maximum(most);
  EXPECT_EQ(least, most);
}

// One rank alone, and the ranks together, give the same times.
TEST(Simulate, GivesTheSameOnSomeOfTheRanks) {
  const RunResults all = simulate(step("10 GB/s"), world());
  if (me() == 0) {
    const auto alone = world().first(1);
    EXPECT_EQ(simulate(step("10 GB/s"), *alone).finish_times, all.finish_times);
    EXPECT_EQ(simulate(step("10 GB/s"), *parallel::make_serial()).finish_times, all.finish_times);
  }
  world().barrier();
}

// A simulation writes no file and changes no handler of signals.
TEST(Simulate, LeavesTheProcessAlone) {
  const auto before = std::signal(SIGTERM, SIG_DFL);
  const test::TemporaryFolder folder;
  const auto old = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const RunResults results = simulate(step("10 GB/s"), world());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(results.file.empty());
  std::filesystem::current_path(old);
  EXPECT_EQ(std::signal(SIGTERM, before), SIG_DFL);
}

// A requested stop ends the run before its first event, with its reason; the next job knows nothing of it.
TEST(Simulate, StopsOnRequest) {
  {
    JobContext job;
    const JobContext::Scope scope(job);
    const config::Configuration configuration = step("10 GB/s");
    job.stop.request("the test");
    try {
      const RunResults results = simulate(configuration, world());
      EXPECT_TRUE(results.stopped_at);
      EXPECT_EQ(results.stop_reason, "the test");
      EXPECT_FALSE(results.metrics);
    } catch (const Error& error) {  // while traces are made
      EXPECT_EQ(error.code(), ErrorCode::interrupted);
    } catch (const parallel::FailedElsewhere& failure) {
      EXPECT_EQ(failure.exit_code, static_cast<int>(ErrorCode::interrupted));
    }
  }
  EXPECT_FALSE(simulate(step("10 GB/s"), world()).stopped_at);
}

// Messages go to the log of the job: all of them on rank 0, and none without a job.
TEST(Simulate, WarnsThroughTheLogOfTheJob) {
  JobContext job;
  std::vector<std::string> texts;
  job.log.set_sink([&](Log::Level, const std::string& text) { texts.push_back(text); });
  const JobContext::Scope scope(job);
  config::Configuration configuration = step("10 GB/s");
  configuration.warnings = {"a warning of the test"};
  const RunResults results = simulate(configuration, world());
  ASSERT_FALSE(results.warnings.empty());
  EXPECT_EQ(results.warnings.front(), "a warning of the test");
  if (me() == 0)
    EXPECT_EQ(texts, results.warnings);
  else
    EXPECT_TRUE(texts.empty());
}

}  // namespace
}  // namespace orrery::run
