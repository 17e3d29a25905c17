#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/time.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/results/results.hpp"
#include "orrery/workload/figures.hpp"

/// Runs simulations: in a program of one's own (examples/embed), and in `orrery run`.
namespace orrery::run {

/// How a simulation is carried out, beyond what its configuration says (run.*).
struct RunOptions {
  bool writes_results = false;  ///< whether results go to the file Configuration::run.output (docs/results.md)
  std::string command_line;     ///< attribute of that file
  /// When the job began: the time limit of the configuration counts from here.
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

/// Rank 0's knowledge of a run, for summaries and files.
struct RunDetails {
  results::RunDescription description;
  results::Gathered gathered;                ///< refers to `description`
  std::string folding;                       ///< description of the folding; empty: not folded
  std::optional<workload::Figures> figures;  ///< figures of a generated workload
};

/// The results of a run, equal on all ranks.
struct RunResults {
  Time simulated_time;                        ///< latest finish time of an NPU
  std::vector<Time> finish_times;             ///< [num_npus]
  std::optional<results::Metrics> metrics;    ///< none: the run was stopped, or no time has passed in it
  std::vector<std::string> warnings;          ///< about the configuration and the traces
  std::filesystem::path file;                 ///< file of the results; empty: none was written
  std::optional<Time> stopped_at;             ///< simulated time at which a requested stop ended the run
  std::string stop_reason;                    ///< "SIGTERM", "the wall-time limit", ...; empty without a stop
  std::filesystem::path checkpoint;           ///< newest checkpoint of a stopped run; empty: none
  std::shared_ptr<const RunDetails> details;  ///< on rank 0; null elsewhere
};

/// Simulates `configuration` on all ranks of `world`. Collective: all ranks give an equal configuration, which
/// config::read makes. The results do not depend on the number of ranks, nor on runs before in this process.
///
/// Messages, requests to stop and progress go through the current JobContext; without one the run is silent and ends
/// by itself. No signal handlers are installed. No file is written but checkpoints (run.checkpoint), and the results if
/// `options` says so.
///
/// Throws Error (bad_input, output, stuck, interrupted, internal) on a rank that knows of a failure and
/// parallel::FailedElsewhere on others. After Communicator::failure_is_agreed the ranks can continue; otherwise a rank
/// may be in the middle of a run, and the job has to be ended. Cost: that of the simulation, and O(num_npus) memory on
/// every rank.
RunResults simulate(const config::Configuration& configuration, parallel::Communicator& world,
                    const RunOptions& options = {});

/// Gives the current job the time limit, the watchdog and the checkpoint of a configuration, as `simulate` does. For
/// callers that do something else after they have read it.
void set_limits(const config::RunOptions& options, std::chrono::steady_clock::time_point start);

}  // namespace orrery::run
