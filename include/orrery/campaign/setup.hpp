#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "orrery/campaign/spread.hpp"

namespace orrery::campaign {

/// What a failure process counts as one unit.
enum class Per : std::uint8_t { npu, host, group, job };
/// What a failure does to the job.
enum class Symptom : std::uint8_t { crash, hang, silent, slow, pause };
/// When units of a process are exposed to it.
enum class Exposure : std::uint8_t { allocated, running };
/// The order in which the healthy hosts of the pool are taken.
enum class Selection : std::uint8_t { first, fewest_failures };

/// Failures of one kind (docs/campaign.md). Rates are those of a unit in a day of exposure.
struct Process {
  std::string name;
  Per per = Per::host;
  Symptom symptom = Symptom::crash;
  double rate = 0;
  double weibull_shape = 0;  ///< 0: times between failures are exponential
  Exposure exposure = Exposure::allocated;
  Spread detect;            ///< seconds from the failure to its detection
  bool repairs = true;      ///< hosts that failed are repaired and replaced
  bool counts_bad = true;   ///< bad hosts have a higher rate
  double speed = 1;         ///< relative speed of the job until a straggler is found
  bool has_notice = false;  ///< a pause comes after a checkpoint
  Spread length;            ///< seconds of a pause

  friend bool operator==(const Process&, const Process&) = default;
};

/// A failure that was recorded.
struct Recorded {
  Nanoseconds time = 0;
  std::int64_t host = -1;  ///< -1: the job
  std::uint32_t process = 0;

  friend bool operator==(const Recorded&, const Recorded&) = default;
};

/// Checkpoints of one kind.
struct Tier {
  Nanoseconds interval = 0;  ///< work between two of them; a multiple of the interval of the tier before
  Nanoseconds stall = 0;     ///< time for which the job stops
  Nanoseconds durable = 0;   ///< time from the snapshot until a restart may use it
  Nanoseconds read = 0;
  std::uint32_t keep = 8;
  bool survives_host = true, survives_group = true;

  friend bool operator==(const Tier&, const Tier&) = default;
};

/// The hosts of a campaign. Host 0 is the first of the pool.
struct HostNumbers {
  std::uint32_t active = 0;  ///< hosts that the job needs
  std::uint32_t standby = 0, pool = 0, spare = 0;
  std::uint32_t group_size = 0;  ///< hosts with consecutive numbers in a group; 0: there are no groups of this kind
  std::vector<std::vector<std::uint32_t>> groups;  ///< listed hosts of each group; empty: `group_size` says it
  double bad_fraction = 0, bad_factor = 1;
  bool wait_for_standbys = false;
  Selection selection = Selection::first;

  std::uint32_t total() const { return active + standby + pool + spare; }
  friend bool operator==(const HostNumbers&, const HostNumbers&) = default;
};

/// How long a new beginning takes.
struct RestartTimes {
  Nanoseconds begin = 0;  ///< start of the processes at the beginning of the campaign
  Spread start;           ///< seconds of the start of the processes after a failure
  Nanoseconds select = 0, swap = 0, spare_preemption = 0;

  friend bool operator==(const RestartTimes&, const RestartTimes&) = default;
};

/// What becomes of hosts that failed.
struct RepairRules {
  bool any = false;  ///< false: hosts are back at once
  Spread automatic, manual;
  double escalate = 0;
  double automatic_fails = 0, manual_fails = 0;
  std::uint32_t retire_failures = 0;  ///< 0: none are retired
  Nanoseconds retire_within = longest;
  double found = 1, wrong = 0;  ///< diagnosis

  friend bool operator==(const RepairRules&, const RepairRules&) = default;
};

/// A job that goes on with fewer replicas.
struct Elastic {
  std::uint32_t hosts_per_replica = 0;                   ///< 0: the job needs all its hosts
  std::uint32_t least = 1;                               ///< replicas
  std::vector<std::pair<std::uint32_t, double>> speeds;  ///< [replicas] work in a second, ascending; empty: simulated
  bool scales_batch = false;  ///< the batch shrinks with the replicas; else they take more micro-batches

  friend bool operator==(const Elastic&, const Elastic&) = default;
};

/// All that a replication depends on, with every time known.
struct Setup {
  HostNumbers hosts;
  std::vector<Process> processes;
  std::vector<Recorded> recorded;  ///< ascending by time
  std::vector<Tier> tiers;
  RestartTimes restart;
  RepairRules repair;
  Elastic elastic;
  std::uint32_t npus_per_host = 1;  ///< units of a host for processes per NPU
  Nanoseconds work = longest;       ///< useful time of the full configuration; `longest`: no end
  Nanoseconds duration = longest;   ///< `longest`: no end
  bool final_checkpoint = false;
  std::uint64_t seed = 1;

  /// Returns the failures in a second of a job that runs with all its hosts, bad ones included in the mean.
  double failure_rate() const;
  /// Returns the rate of one process in failures per second.
  double failure_rate(const Process& process) const;
  /// Throws Error (bad_input) for a set-up that cannot be simulated, at the key of CONFIG.yaml.
  void validate() const;
};

}  // namespace orrery::campaign
