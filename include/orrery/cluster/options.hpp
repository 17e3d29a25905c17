#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/campaign/spread.hpp"
#include "orrery/cluster/job.hpp"

namespace orrery::cluster {

enum class Admission : std::uint8_t { fifo, sjf, easy, priority };
enum class Placing : std::uint8_t { none, first, contiguous, packed, random, torus };
enum class Sharing : std::uint8_t { none, formula, simulate };
/// Which links the formula of sharing counts.
enum class SharedLinks : std::uint8_t { one_link, uplinks };

/// Jobs of one kind, as they are drawn.
struct JobClass {
  std::string name;
  double rate = 0;                        ///< arrivals in a day
  std::vector<std::uint32_t> npus = {1};  ///< drawn evenly
  campaign::Spread length;                ///< seconds alone, or steps
  bool counts_steps = false;              ///< `length` is in steps
  Nanoseconds step = 0;                   ///< time of a step; 0: `steps_of` says it
  std::string workload;                   ///< value of `workload` in YAML's flow style; empty: there is none
  /// Numbers of NPUs and the time of a step on a packed placement of so many in an empty cluster, as simulated.
  std::vector<std::pair<std::uint32_t, Nanoseconds>> steps_of = {};
  double overestimate = 1;
  std::optional<std::uint32_t> priority;  ///< none: the number of the class
  double share = 0;                       ///< 0: Rules::share
  double power = 0;                       ///< W of an NPU with such a job; 0: Site::running

  /// Returns the time of a step of a job with so many NPUs.
  Nanoseconds step_with(std::uint32_t num_npus) const {
    for (const auto& [size, time] : steps_of)
      if (size == num_npus) return time;
    return step;
  }
  friend bool operator==(const JobClass&, const JobClass&) = default;
};

/// The NPUs of a cluster, and how jobs are placed on them.
struct Places {
  std::uint32_t npus = 0;                ///< 0: those of the system
  std::uint32_t leaf = 0;                ///< NPUs below one leaf switch; 0: all
  std::uint32_t npus_per_host = 1;       ///< a job of more than half a host takes whole hosts
  std::array<std::uint32_t, 3> torus{};  ///< 0: no torus
  std::array<std::uint32_t, 3> cubes{};  ///< NPUs of a cube of which the torus is made; 0: it is not
  bool circuits = false;                 ///< optical circuits join any cubes
  bool rotate = false, wrap = false;
  Placing policy = Placing::none;

  friend bool operator==(const Places&, const Places&) = default;
};

/// How jobs are admitted, stopped and slowed down.
struct Rules {
  Admission admission = Admission::fifo;
  bool preemption = false;
  Nanoseconds protect = 0;              ///< jobs that have run for less are not stopped
  Nanoseconds restart = 0;              ///< time that a stopped job needs when it starts again
  Nanoseconds switching = 0;            ///< time to form the circuits of a job of several cubes
  Nanoseconds checkpoint_interval = 0;  ///< 0: nothing is lost
  std::optional<std::uint32_t> queue_limit;
  std::uint32_t backfill_depth = 1000;  ///< jobs that EASY looks at in a pass
  Sharing sharing = Sharing::none;
  SharedLinks links = SharedLinks::uplinks;
  double share = 0.5;                ///< share of jobs that have none of their own
  std::uint32_t sharing_steps = 12;  ///< steps of the slowest job for which jobs that share links are simulated

  friend bool operator==(const Rules&, const Rules&) = default;
};

/// Power of the site, as far as the scheduler is concerned. 0: no limit.
struct Site {
  double power_cap = 0;  ///< W; a job starts only if the sum stays within it
  /// Times of the day, ascending from 0, and the cap in W from then on; empty: `power_cap` at all times.
  std::vector<std::pair<Nanoseconds, double>> caps;
  double running = 0, idle = 0;  ///< W of an NPU that has a job, and of one that has none
  double ramp = 0;               ///< W in a second by which starts of jobs raise the power at the most

  /// Returns the cap in W at a time; infinity if there is none.
  double cap_at(Nanoseconds time) const;
  /// Returns when the cap changes next; max() if it never does.
  Nanoseconds next_cap(Nanoseconds time) const;
  friend bool operator==(const Site&, const Site&) = default;
};

/// Hosts that fail, whether they have a job or not.
struct HostFailures {
  campaign::Spread mtbf, repair;  ///< seconds from a repair to the next failure, and of the repair; 0: none fails

  bool any() const { return !mtbf.is_zero(); }
  friend bool operator==(const HostFailures&, const HostFailures&) = default;
};

/// Where jobs come from.
struct Arrivals {
  std::vector<Job> jobs;          ///< listed
  std::vector<JobClass> classes;  ///< drawn, unless jobs are listed
  std::uint64_t count = 0;        ///< drawn jobs; 0: as many as arrive in `duration`
  Nanoseconds duration = 0;
  std::filesystem::path trace;               ///< file of recorded jobs; empty: none
  std::string columns;                       ///< preset or names of its columns
  std::vector<std::string> classes_of_jobs;  ///< names of the classes of listed jobs

  friend bool operator==(const Arrivals&, const Arrivals&) = default;
};

/// The section `cluster` of CONFIG.yaml.
struct Options {
  Places places;
  Rules rules;
  Arrivals arrivals;
  Site site;
  HostFailures failures;
  std::uint32_t warm_up = 0;  ///< jobs that are left out of summaries
  std::uint32_t seed = 1;
  std::uint32_t replications = 1;

  bool is_given() const { return !arrivals.jobs.empty() || !arrivals.classes.empty() || !arrivals.trace.empty(); }
  friend bool operator==(const Options&, const Options&) = default;
};

}  // namespace orrery::cluster
