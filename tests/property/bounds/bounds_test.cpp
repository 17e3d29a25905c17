// Bounds of a step's time and memory, found without a simulation, against simulations of random small configurations.
// ORRERY_BOUND_CASES and ORRERY_BOUND_SEED say how many, and which.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bounds.hpp"
#include "orrery/base/error.hpp"
#include "orrery/config/read.hpp"
#include "orrery/explore/study.hpp"
#include "random_configuration.hpp"
#include "system.hpp"
#include "trial.hpp"

namespace orrery::app {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// What a simulation found, in whole picoseconds and bytes, and what bounds said before it.
struct Case {
  std::string text;
  std::int64_t time = 0, least_time = 0;
  std::uint64_t peak = 0, least_peak = 0;
};

double metric(const Trial& trial, std::string_view name) {
  const auto which = std::ranges::find(explore::metrics(), name, &explore::MetricInfo::name);
  return trial.metrics[static_cast<std::size_t>(which - explore::metrics().begin())];
}

/// Returns what is found of a configuration; nothing if it is refused.
std::optional<Case> simulated(std::string text) {
  std::optional<config::Configuration> configuration;
  Case found{.text = std::move(text)};
  try {
    configuration = config::parse(found.text, "random.yaml");
    System system(*configuration);
    found.least_time = least_step_time(*configuration, system).ps();
    found.least_peak = least_peak_memory(*configuration).count();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input) throw;
    return {};
  }
  const auto trial = simulate_trial(*configuration, {}, [] { return false; });
  if (!trial || trial->status == TrialStatus::refused) return {};
  EXPECT_EQ(trial->status, TrialStatus::done) << trial->text << '\n' << found.text;
  found.time = std::llround(metric(*trial, "step_time") * 1e12);
  found.peak = static_cast<std::uint64_t>(metric(*trial, "peak_memory"));
  return found;
}

/// Returns how many cases are below their bounds, if these are larger by a factor.
std::size_t num_below(const std::vector<Case>& cases, double factor, bool of_time) {
  return static_cast<std::size_t>(std::ranges::count_if(cases, [&](const Case& one) {
    if (factor == 1) return of_time ? one.time < one.least_time : one.peak < one.least_peak;
    return of_time ? static_cast<double>(one.time) < factor * static_cast<double>(one.least_time)
                   : static_cast<double>(one.peak) < factor * static_cast<double>(one.least_peak);
  }));
}

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

class Bounds : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::uint64_t count = from_environment("ORRERY_BOUND_CASES", 150);
    Draw draw(from_environment("ORRERY_BOUND_SEED", 1));
    while (cases_.size() < count) {
      auto found = simulated(random_configuration(draw));
      if (found)
        cases_.push_back(std::move(*found));
      else
        ++num_refused_;
    }
  }

  static std::vector<Case> cases_;
  static std::uint64_t num_refused_;
};

std::vector<Case> Bounds::cases_;
std::uint64_t Bounds::num_refused_ = 0;

TEST_F(Bounds, NoStepIsShorterToThePicosecond) {
  std::vector<double> ratios;
  for (const Case& one : cases_) {
    EXPECT_GE(one.time, one.least_time) << one.text;
    if (one.least_time > 0) ratios.push_back(static_cast<double>(one.least_time) / static_cast<double>(one.time));
  }
  ASSERT_FALSE(ratios.empty());
  fmt::print("{} steps, {} refused, {} with a bound of the time: on the median {:.3f} of it, on a tenth below {:.3f}\n",
             cases_.size(), num_refused_, ratios.size(), quantile(ratios, 0.5), quantile(ratios, 0.1));
  EXPECT_GT(ratios.size(), cases_.size() / 3);
  EXPECT_GT(quantile(ratios, 0.5), 0.8);
}

TEST_F(Bounds, NoPeakIsSmallerToTheByte) {
  std::vector<double> ratios;
  for (const Case& one : cases_) {
    EXPECT_GE(one.peak, one.least_peak) << one.text;
    if (one.least_peak > 0) ratios.push_back(static_cast<double>(one.least_peak) / static_cast<double>(one.peak));
  }
  ASSERT_FALSE(ratios.empty());
  fmt::print("{} with a bound of memory: on the median {:.3f} of the peak, on a tenth below {:.3f}\n", ratios.size(),
             quantile(ratios, 0.5), quantile(ratios, 0.1));
  EXPECT_GT(quantile(ratios, 0.5), 0.8);
}

TEST_F(Bounds, BoundsThatAreTwoPercentTooHighAreCaught) {
  EXPECT_EQ(num_below(cases_, 1, true), 0U);
  EXPECT_GT(num_below(cases_, 1.02, true), 0U);
  EXPECT_EQ(num_below(cases_, 1, false), 0U);
  EXPECT_GT(num_below(cases_, 1.02, false), 0U);
}

TEST_F(Bounds, CasesHaveAllThatBoundsTellApart) {
  const auto count = [](std::string_view words) {
    return std::ranges::count_if(cases_, [&](const Case& one) { return one.text.find(words) != std::string::npos; });
  };
  for (const std::string_view words : {"schedule: 1f1b",
                                       "schedule: gpipe",
                                       "schedule: zb-h1",
                                       "schedule: zb-v",
                                       "zero: 0",
                                       "zero: 1",
                                       "zero: 2",
                                       "zero: 3",
                                       "sp: true",
                                       "cp: 2",
                                       "ep: 2",
                                       "tied-embeddings: true",
                                       "perturbation:",
                                       "interleaving: 2",
                                       "ring",
                                       "direct",
                                       "halvingDoubling",
                                       "doubleBinaryTree",
                                       "recompute: full",
                                       "recompute: selective"})
    EXPECT_GT(count(words), 0) << words;
}

TEST(TrialBelowBounds, IsAnInternalErrorThatNamesTheTrial) {
  TrialEstimate estimate;
  estimate.step = Time::from_ps(2'000'000);
  estimate.peak_memory = Bytes(1000);
  Trial trial = Trial::ended(TrialStatus::done, "");
  const auto set = [&](std::string_view name, double value) {
    const auto which = std::ranges::find(explore::metrics(), name, &explore::MetricInfo::name);
    trial.metrics[static_cast<std::size_t>(which - explore::metrics().begin())] = value;
  };
  set("step_time", 2e-6);
  set("peak_memory", 1000);
  EXPECT_NO_THROW(require_above_bounds(7, trial, estimate));
  set("step_time", 1.999999e-6);
  try {
    require_above_bounds(7, trial, estimate);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_NE(std::string(error.what()).find("trial 7: step_time"), std::string::npos) << error.what();
  }
  set("step_time", 2e-6);
  set("peak_memory", 999);
  EXPECT_THROW(require_above_bounds(7, trial, estimate), Error);
}

}  // namespace
}  // namespace orrery::app
