#include "orrery/campaign/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "orrery/base/error.hpp"

namespace orrery::campaign {
namespace {

[[noreturn]] void refuse_option(std::string key, std::string_view found, std::string_view expected = {}) {
  throw Error(ErrorCode::bad_input, {.key = std::move(key)}, found, expected);
}

constexpr double most_failures = 1e9;  // of all replications

/// Returns the steps of work that is not given as a time.
double steps_of(const Work& work, const Times& times, const std::string& key) {
  if (work.unit == Work::Unit::steps) return work.amount;
  if (times.tokens == 0) refuse_option(key, "found tokens, but a step has no known number of them", "step.tokens");
  return std::ceil(work.amount / times.tokens);
}

/// Returns work in nanoseconds of the full configuration.
Nanoseconds time_of(const Work& work, const Times& times, const std::string& key) {
  if (work.unit == Work::Unit::time) return nanoseconds(work.amount);
  return nanoseconds(steps_of(work, times, key) * seconds(times.step));
}

/// Returns the interval in whole steps.
Nanoseconds interval_of(const Work& interval, const Times& times, const std::string& key) {
  const double steps = interval.unit == Work::Unit::time ? std::ceil(interval.amount / seconds(times.step) - 1e-9)
                                                         : steps_of(interval, times, key);
  if (steps * seconds(times.step) > seconds(longest))
    refuse_option(key, fmt::format("found {} steps, which take more than 100 years", steps), "at most 100 years");
  return static_cast<Nanoseconds>(std::max(1.0, steps)) * times.step;
}

/// Says in steps what a tier's interval has to be.
void require_durable(const Tier& tier, const Times& times, std::size_t i) {
  const Nanoseconds most = tier.interval + tier.stall;
  if (tier.durable <= most) return;
  const Nanoseconds steps = (tier.durable - tier.stall + times.step - 1) / times.step;
  refuse_option(fmt::format("campaign.checkpoint.{}", i),
                fmt::format("a checkpoint takes {:.4g} s to be durable, but one is due every {:.4g} s; use at least {} "
                            "steps",
                            seconds(tier.durable), seconds(most), steps));
}

std::vector<Tier> tiers_of(const Options& options, const Times& times) {
  std::vector<Tier> tiers;
  for (std::size_t i = 0; i < options.tiers.size(); ++i) {
    const TierOptions& given = options.tiers[i];
    const Times::OfTier& found = times.tiers[i];
    Tier& tier = tiers.emplace_back();
    tier = {.interval = interval_of(given.interval, times, fmt::format("campaign.checkpoint.{}.interval", i)),
            .stall = found.stall,
            .durable = found.durable,
            .read = found.read,
            .keep = given.keep,
            .survives_host = given.survives_host,
            .survives_group = given.survives_group};
    if (i > 0 && tier.interval % tiers[i - 1].interval != 0)
      refuse_option(fmt::format("campaign.checkpoint.{}.interval", i),
                    fmt::format("{} steps is no multiple of {} steps, the interval of tier {}",
                                tier.interval / times.step, tiers[i - 1].interval / times.step, i - 1));
    require_durable(tier, times, i);
  }
  return tiers;
}

/// Throws for a campaign that would take for ever.
void require_few_failures(const Setup& setup, const Sampling& sampling) {
  const double failures = setup.failure_rate() * seconds(std::min(setup.work, setup.duration)) * sampling.replications;
  if (failures > most_failures)
    refuse_option("campaign",
                  fmt::format("{} replications would have about {:.0e} failures", sampling.replications, failures),
                  "1e9 at the most; raise restart or lower the rates");
}

}  // namespace

Setup setup_of(const Options& options, const Times& times, std::uint32_t num_npus) {
  if (times.step <= 0) refuse_option("campaign.step.time", "a step takes no time", "more than 0 s");
  Setup setup;
  setup.hosts = options.hosts;
  setup.npus_per_host = options.npus_per_host;
  if (setup.hosts.active == 0) {
    if (num_npus == 0)
      refuse_option("campaign.hosts.active", "the key is missing, and there is no workload", "a number of hosts");
    if (num_npus % options.npus_per_host != 0)
      refuse_option("campaign.hosts.npus",
                    fmt::format("the job has {} NPUs, which do not fill hosts of {}", num_npus, options.npus_per_host));
    setup.hosts.active = num_npus / options.npus_per_host;
  }
  if (num_npus > 0 && std::uint64_t{setup.hosts.active} * options.npus_per_host > num_npus)
    refuse_option("campaign.hosts",
                  fmt::format("the job needs {} hosts of {} NPUs, but system has {}", setup.hosts.active,
                              options.npus_per_host, num_npus / options.npus_per_host));
  if (num_npus > 0 && std::uint64_t{setup.hosts.active} * options.npus_per_host < num_npus)
    refuse_option("campaign.hosts.active",
                  fmt::format("{} hosts of {} NPUs have {}, but the workload has {}", setup.hosts.active,
                              options.npus_per_host, setup.hosts.active * options.npus_per_host, num_npus),
                  "as many as the workload, or no hosts.active");
  for (std::size_t f = 0; f < options.processes.size(); ++f) {
    setup.processes.push_back(options.processes[f].process);
    if (options.processes[f].compute > 0) setup.processes.back().speed = times.speeds[f];
  }
  setup.recorded = options.recorded;
  for (std::size_t f = 0; f < options.processes.size(); ++f)
    for (const Nanoseconds time : options.processes[f].at)
      setup.recorded.push_back({time, -1, static_cast<std::uint32_t>(f)});
  std::ranges::stable_sort(setup.recorded, {}, &Recorded::time);
  setup.tiers = tiers_of(options, times);
  setup.restart = options.restart;
  setup.repair = options.repair;
  setup.elastic = options.elastic;
  if (setup.elastic.speeds.empty()) setup.elastic.speeds = times.elastic;
  if (options.work.amount > 0) setup.work = time_of(options.work, times, "campaign.work");
  setup.duration = options.duration;
  setup.final_checkpoint = options.final_checkpoint;
  setup.seed = options.sampling.seed;
  setup.validate();
  require_few_failures(setup, options.sampling);
  return setup;
}

}  // namespace orrery::campaign
