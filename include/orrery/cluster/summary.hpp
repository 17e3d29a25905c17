#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/cluster/options.hpp"
#include "orrery/cluster/schedule.hpp"

namespace orrery::cluster {

/// A figure of jobs over all of them.
struct Distribution {
  double mean = 0, median = 0, p95 = 0, p99 = 0;
};

/// Times of jobs: seconds, or shares of a time.
struct JobFigures {
  std::uint64_t jobs = 0;
  Distribution wait;      ///< from arrival to first start
  Distribution run;       ///< from first start to end
  Distribution jct;       ///< from arrival to end
  Distribution slowdown;  ///< time from the first start over that alone
  Distribution bounded_slowdown;
  double waited = 0;  ///< share of the jobs that did not start at once
  double stops = 0;
  double lost = 0;    ///< NPU-seconds
  double energy = 0;  ///< J
};

/// Figures of one job.
struct TimesOfJob {
  double wait = 0, run = 0, jct = 0, slowdown = 0, bounded_slowdown = 0;
};
TimesOfJob times_of(const Job& job, const JobResult& result);

/// Returns the figures of the jobs of each number of NPUs, ascending, without those of the warm-up.
std::vector<std::pair<std::uint32_t, JobFigures>> figures_by_size(std::span<const Job> jobs, const Schedule& schedule,
                                                                  std::uint32_t warm_up);

/// What became of the jobs of one run, without those of the warm-up.
struct Summary {
  JobFigures all;
  std::vector<JobFigures> classes;  ///< [classes]
  double makespan = 0;              ///< seconds
  double utilisation = 0, useless = 0, fragmentation = 0, blocked = 0, unplaced = 0, rejected = 0;
  double energy = 0, peak_power = 0;  ///< J and W of all NPUs
  double largest_ramp = 0;            ///< W in a second, over a minute
  double host_failures = 0;
  double stops = 0, lost = 0;  ///< stops and lost NPU-seconds of all jobs, the warm-up included
};

/// A number of a summary with its name and unit.
struct SummaryMetric {
  std::string_view name, unit, text;
  double (*value)(const Summary& summary);
};
std::span<const SummaryMetric> summary_metrics();

/// Adds up a run. Checks that the integral of jobs inside is the sum of the times that they took (Little's law), to the
/// nanosecond. O(n log n).
Summary summarise(std::span<const Job> jobs, const Schedule& schedule, const Options& options, std::size_t num_classes,
                  std::uint32_t num_npus);

/// Returns the half-width of the 95 % interval of the mean wait of one run, from the means of 32 batches of jobs that
/// follow one another: single waits depend on each other. 0 for fewer than 320 jobs.
double half_width_of_waits(std::span<const Job> jobs, const Schedule& schedule, std::uint32_t warm_up);

}  // namespace orrery::cluster
