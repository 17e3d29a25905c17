#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/cluster/job.hpp"
#include "orrery/cluster/options.hpp"
#include "orrery/cluster/placement.hpp"

namespace orrery::cluster {

/// A change of the use of the cluster.
struct Usage {
  Nanoseconds time = 0;
  std::uint32_t busy = 0, free = 0, queue = 0;
  std::int32_t largest = -1;  ///< NPUs of the largest job that fits; -1: not looked for
};

/// Integrals over the time of a run, in NPU-nanoseconds; 128 bits, because 10,000 NPUs for years are more than 64.
struct Integrals {
  __int128 busy = 0;           ///< NPU-time of jobs
  __int128 inside = 0;         ///< job-time from arrivals to ends
  __int128 fragmentation = 0;  ///< free NPU-time while the first of the queue had enough free NPUs but no place
  __int128 blocked = 0;        ///< free NPU-time while the first of the queue had too few
  double energy = 0;           ///< J of all NPUs
  double peak_power = 0;       ///< W of all NPUs
  double largest_ramp = 0;     ///< W in a second by which starts of jobs raised the power within a minute
  Nanoseconds unplaced = 0;    ///< time for which the first of the queue had enough free NPUs but no place
};

/// The results of one run of a scheduler.
struct Schedule {
  std::vector<JobResult> jobs;  ///< [jobs]
  std::vector<Place> places;    ///< [jobs] the last place of each; empty unless they are kept
  std::vector<Usage> usage;     ///< empty unless it is kept
  Integrals integrals;
  Nanoseconds begin = 0, end = 0;  ///< first arrival, last end
  std::uint64_t host_failures = 0;
};

/// Gives running jobs their slow-down by the jobs with which they share links (S8).
class Slowdown {
 public:
  virtual ~Slowdown() = default;

  /// Notes that a job has begun on these leaves, or has ended. Returns the running jobs whose factors may have changed.
  virtual std::vector<std::uint32_t> begin(std::uint32_t job, const Place& place,
                                           const std::vector<std::uint32_t>& leaves) = 0;
  virtual std::vector<std::uint32_t> end(std::uint32_t job) = 0;
  /// Finds the factors that have changed at one time, when all jobs of this time have begun and ended. Returns the
  /// running jobs that these are of, beside those that `begin` and `end` returned.
  virtual std::vector<std::uint32_t> settle() { return {}; }
  /// Returns the time of a job's step over that alone on a packed placement.
  virtual double factor(std::uint32_t job) = 0;
};

/// The records of a run besides the results of jobs.
struct Keep {
  bool places = false, usage = false, leaves = true;
};

/// Runs jobs through a scheduler (docs/cluster-time.md, S1 to S7 and S9). `jobs` are in the order of their numbers;
/// `slowdown` may be null. The result depends on the arguments alone. Throws Error (bad_input) for a job that can never
/// run. Cost O(jobs * (log jobs + the placement policy)); EASY looks at Rules::backfill_depth jobs in each pass.
Schedule schedule(std::span<const Job> jobs, const Options& options, std::uint64_t seed, Slowdown* slowdown,
                  const Keep& keep = {});

}  // namespace orrery::cluster
