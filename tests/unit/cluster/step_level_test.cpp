#include "orrery/cluster/step_level.hpp"

#include <gtest/gtest.h>

#include "orrery/base/error.hpp"
#include "orrery/cluster/cluster.hpp"

namespace orrery::cluster {
namespace {

/// Jobs that all pass link 0. No placement is like another one.
class OneLink final : public StepLevel {
 public:
  std::uint32_t class_of(const std::string&) override { return 0; }
  std::vector<PlacedJob> signature(std::vector<PlacedJob> jobs) const override { return jobs; }
  std::vector<AloneStep> alone(const std::vector<PlacedJob>& jobs) override {
    return std::vector<AloneStep>(jobs.size(), {1, {0}});
  }
  std::vector<std::vector<double>> together(const std::vector<std::vector<PlacedJob>>& components,
                                            const std::vector<std::vector<double>>&) override {
    std::vector<std::vector<double>> factors;
    for (const auto& jobs : components) factors.emplace_back(jobs.size(), 1.5);
    return factors;
  }
};

Options options_with(std::uint64_t num_jobs) {
  Options options;
  options.places = {.npus = 64, .leaf = 8, .policy = Placing::random};
  options.rules.sharing = Sharing::simulate;
  for (std::uint64_t i = 0; i < num_jobs; ++i) {
    Job job;
    job.arrival = static_cast<Nanoseconds>(i) * campaign::second;
    job.npus = 8;
    job.length = job.estimate = 2 * campaign::second;
    options.arrivals.jobs.push_back(job);
  }
  options.arrivals.classes_of_jobs = {"a"};
  return options;
}

// More components than the limit end the run with what is known. Fewer are simulated once each.
TEST(StepLevel, LimitsComponents) {
  OneLink steps;
  const auto world = parallel::make_serial();
  const Found found = run(options_with(100), {}, {}, &steps, *world);
  EXPECT_GE(found.sharing.components.size(), 99U);
  for (const Component& component : found.sharing.components)
    for (const double factor : component.factors) EXPECT_EQ(factor, 1.5);
  try {
    run(options_with(21'000), {}, {}, &steps, *world);
    FAIL() << "no limit";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("more than 20000 components would be simulated (limit)"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace orrery::cluster
