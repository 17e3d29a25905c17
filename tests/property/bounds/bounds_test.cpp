// Bounds of a step's time and memory, found without a simulation, against simulations of random small configurations.
// ORRERY_BOUND_CASES and ORRERY_BOUND_SEED say how many, and which.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orrery/base/error.hpp"
#include "orrery/config/read.hpp"
#include "orrery/explore/study.hpp"
#include "orrery/results/metric_registry.hpp"
#include "orrery/run/system.hpp"
#include "orrery/study/bounds.hpp"
#include "orrery/workload/outline.hpp"
#include "quick_bound.hpp"
#include "random_configuration.hpp"
#include "trial.hpp"

namespace orrery::study {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// What a simulation found, in whole picoseconds and bytes, and what bounds said before it.
struct Case {
  std::string text;
  std::int64_t time = 0, least_time = 0, quick_time = 0;
  std::uint64_t peak = 0, least_peak = 0;
};

double metric(const Trial& trial, std::string_view name) {
  const auto which = std::ranges::find(results::study_metrics(), name, &results::MetricInfo::name);
  return trial.metrics[static_cast<std::size_t>(which - results::study_metrics().begin())];
}

/// Compares the quick bounds of a step that has the same layers as one whose bounds have been found by `bounds`: what
/// is known of the layers may not change anything.
void compare_with_same_layers(config::Configuration configuration, QuickBounds& bounds, run::System& system,
                              const std::string& text) {
  auto& description = *configuration.workload.generated;
  std::swap(description.parallel[workload::Axis::pp], description.parallel[workload::Axis::dp]);
  description.parallel.pipeline.schedule = workload::Schedule::one_forward_one_backward;
  description.parallel.interleaving = 1;
  description.parallel.sharding.replicas = 1;
  description.parallel.sharding.zero = (description.parallel.sharding.zero + 1) % 4;
  Faults faults;
  configuration.validate(faults);
  if (!faults.empty()) return;
  EXPECT_EQ(bounds.least_peak_memory(configuration), least_peak_memory(configuration)) << text;
  if (!has_time_bound(configuration)) return;
  const Time quick = bounds.least_step_time(configuration, system);
  EXPECT_EQ(quick, QuickBounds().least_step_time(configuration, system)) << text;
  EXPECT_LE(quick, least_step_time(configuration, system)) << text;
}

/// Returns what is found of a configuration; nothing if it is refused.
std::optional<Case> simulated(std::string text) {
  std::optional<config::Configuration> configuration;
  Case found{.text = std::move(text)};
  try {
    configuration = config::parse(found.text, "random.yaml");
    run::System system(*configuration);
    found.least_time = least_step_time(*configuration, system).ps();
    found.least_peak = least_peak_memory(*configuration).count();
    if (workload::has_outline(*configuration->workload.generated)) {
      QuickBounds bounds;
      EXPECT_EQ(bounds.least_peak_memory(*configuration).count(), found.least_peak) << found.text;
      if (has_time_bound(*configuration)) found.quick_time = bounds.least_step_time(*configuration, system).ps();
      compare_with_same_layers(*configuration, bounds, system, found.text);
    }
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

// Random steps on small systems. None takes less than its bound, most of which are above 0.8 of the time.
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

// The same steps. The quick bound of each is positive where there is a bound, and not above the whole one.
TEST_F(Bounds, QuickOnesAreNotAboveTheOthers) {
  std::vector<double> ratios;
  for (const Case& one : cases_) {
    EXPECT_LE(one.quick_time, one.least_time) << one.text;
    if (one.least_time > 0) {
      EXPECT_GT(one.quick_time, 0) << one.text;
      ratios.push_back(static_cast<double>(one.quick_time) / static_cast<double>(one.least_time));
    }
  }
  ASSERT_FALSE(ratios.empty());
  fmt::print("quick bounds: on the median {:.3f} of the others, on a tenth below {:.3f}\n", quantile(ratios, 0.5),
             quantile(ratios, 0.1));
}

// The same steps. No NPU needs less memory than the bound, most of which are above 0.8 of the peak.
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

// The same steps, and bounds of time and memory times 1.02. Some steps are below these.
TEST_F(Bounds, BoundsThatAreTwoPercentTooHighAreCaught) {
  EXPECT_EQ(num_below(cases_, 1, true), 0U);
  EXPECT_GT(num_below(cases_, 1.02, true), 0U);
  EXPECT_EQ(num_below(cases_, 1, false), 0U);
  EXPECT_GT(num_below(cases_, 1.02, false), 0U);
}

// The same steps. All schedules, algorithms and ways to divide the work are among them.
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

// A trial whose time or peak is below its bound by the least that can be. The error names it.
TEST(TrialBelowBounds, IsAnInternalErrorThatNamesTheTrial) {
  TrialEstimate estimate;
  estimate.step = Time::from_ps(2'000'000);
  estimate.peak_memory = Bytes(1000);
  Trial trial = Trial::ended(TrialStatus::done, "");
  EXPECT_NO_THROW(require_above_bounds(7, trial, estimate));
  trial.metrics.resize(results::study_metrics().size(), std::nan(""));
  const auto set = [&](std::string_view name, double value) {
    const auto which = std::ranges::find(results::study_metrics(), name, &results::MetricInfo::name);
    trial.metrics[static_cast<std::size_t>(which - results::study_metrics().begin())] = value;
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
  set("peak_memory", 1000);
  estimate.seconds_of_model = 1e-6;  // of 2 us at least
  estimate.seconds_of_execution = 1.2e-6;
  estimate.energy = 5;
  set("mfu", 0.5);
  set("hfu", 0.6);
  set("energy_per_step", 5);
  EXPECT_NO_THROW(require_above_bounds(7, trial, estimate));
  for (const auto& [metric, better, kept] :
       {std::tuple("mfu", 0.501, 0.5), std::tuple("hfu", 0.601, 0.6), std::tuple("energy_per_step", 4.9, 5.0)}) {
    set(metric, better);
    EXPECT_THROW(require_above_bounds(7, trial, estimate), Error) << metric;
    set(metric, kept);
  }
}

}  // namespace
}  // namespace orrery::study
