#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/campaign/setup.hpp"

namespace orrery::campaign {

/// An amount of work: seconds of the full configuration, steps, or tokens.
struct Work {
  enum class Unit : std::uint8_t { time, steps, tokens };
  Unit unit = Unit::time;
  double amount = 0;  ///< seconds, steps or tokens; 0: none is given

  friend bool operator==(const Work&, const Work&) = default;
};

/// Where a checkpoint is kept.
enum class TierKind : std::uint8_t { peer, remote };
/// Which NPUs write a checkpoint.
enum class Writers : std::uint8_t { sharded, first_replica };

/// A checkpoint tier as CONFIG.yaml has it. Times that are not given are simulated.
struct TierOptions {
  TierKind kind = TierKind::remote;
  Work interval;
  bool asynchronous = false;
  std::optional<Nanoseconds> stall, durable, read;
  std::uint32_t keep = 8;
  bool survives_host = true, survives_group = true;
  Writers writers = Writers::sharded;
  double bytes_per_parameter = 14;

  friend bool operator==(const TierOptions&, const TierOptions&) = default;
};

/// A failure process as CONFIG.yaml has it.
struct ProcessOptions {
  Process process;
  std::vector<Nanoseconds> at = {};  ///< times of pauses that are known
  double compute = 0;  ///< speed of a straggler's NPUs, for which a step is simulated; 0: Process::speed says it

  friend bool operator==(const ProcessOptions&, const ProcessOptions&) = default;
};

/// How many replications there are.
struct Sampling {
  std::uint32_t replications = 100;
  double accuracy = 0;  ///< half-width of the interval of the effective training time ratio; 0: `replications` says it
  std::uint32_t seed = 1;

  friend bool operator==(const Sampling&, const Sampling&) = default;
};

/// Times of the job that are given instead of simulated.
struct StepOptions {
  std::optional<Nanoseconds> time;  ///< duration of a step with all replicas
  double tokens = 0;                ///< tokens of a step; 0: as the workload says
  Bandwidth host_bandwidth;         ///< with which an NPU copies a checkpoint to host memory; 0: not known

  friend bool operator==(const StepOptions&, const StepOptions&) = default;
};

/// The section `campaign` of CONFIG.yaml.
struct Options {
  StepOptions step;
  Work work;
  Nanoseconds duration = longest;  ///< `longest`: none is given
  HostNumbers hosts;               ///< `active` 0: as many as the workload needs
  std::uint32_t npus_per_host = 8;
  std::vector<TierOptions> tiers;
  bool final_checkpoint = false;
  RestartTimes restart;
  std::vector<ProcessOptions> processes;
  std::vector<Recorded> recorded;
  std::string recorded_file;
  RepairRules repair;
  Elastic elastic;
  Sampling sampling;

  /// Returns whether the configuration has a campaign.
  bool is_given() const { return duration < longest || work.amount > 0; }
  friend bool operator==(const Options&, const Options&) = default;
};

/// Times that the network and the memories decide, as simulations found them or as they are given.
struct Times {
  struct OfTier {
    Nanoseconds stall = 0, durable = 0, read = 0;
  };
  Nanoseconds step = 0;
  double tokens = 0;           ///< tokens of a step; 0: not known
  std::vector<OfTier> tiers;   ///< [tiers]
  std::vector<double> speeds;  ///< [processes] of stragglers
  std::vector<std::pair<std::uint32_t, double>> elastic =
      {};  ///< replicas and the speed of the job with them, if simulated
};

/// Returns the set-up that is simulated. `num_npus`: of the job, which decides how many hosts it needs unless
/// `hosts.active` says it. Throws Error (bad_input) at the key of CONFIG.yaml.
Setup setup_of(const Options& options, const Times& times, std::uint32_t num_npus);

}  // namespace orrery::campaign
