#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/checkpoint/piece.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/model/resumed_state.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/pdes/kernel.hpp"
#include "orrery/run/preparation.hpp"

namespace orrery::run {

class Checkpoints;
class ProgressLine;

/// Where a simulation begins and ends.
struct Span {
  const model::ResumedState* from = nullptr;  ///< null: from time 0, or from the checkpoint that is to be read
  Time limit = Time::max();                   ///< no later event is handled
};

/// The simulation of a prepared run, until no event is left.
class Simulation {
 public:
  /// The kernel asks from time to time whether a stop for good is requested. `checkpoints`: null if there are none.
  Simulation(Preparation& preparation, const config::RunOptions& options, std::function<bool()> stop_requested,
             parallel::Communicator& world, Checkpoints* checkpoints = nullptr, Span span = {});
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// Runs the simulation. Collective. Throws Error (stuck) on rank 0, with what the unfinished NPUs wait for, if not
  /// all of them finish, and Error (bad_input) on one rank if an NPU leaves the range of simulated time, or exceeds its
  /// local memory where that is an error.
  ///
  /// Returns the divergences of all ranks, in a folded run. If there are any, the run is not checked, and of no use. It
  /// may have ended early, after the first completion of one.
  std::vector<communicator::Divergence> run();
  /// Runs to the limit and returns the state of this rank there. No collective may diverge. Collective.
  std::vector<checkpoint::Piece> state_at_limit();
  /// Returns the time at which a requested stop ended the run; nothing if all NPUs were done.
  std::optional<Time> stopped_at() const { return stopped_at_; }

  const model::RankModel& model() const { return model_; }
  const pdes::Statistics& kernel_statistics() const { return kernel_->statistics(); }
  /// Returns the recorder of this rank; null if the load is not recorded.
  const pdes::LoadRecorder* load() const { return load_.get(); }
  double wall_seconds() const { return wall_seconds_; }

 private:
  void record_load();
  void simulate();
  void save();
  bool has_diverged() const;

  Preparation& preparation_;
  parallel::Communicator& world_;
  model::RankModel model_;
  std::unique_ptr<pdes::LoadRecorder> load_;  ///< null: not recorded
  std::unique_ptr<ProgressLine> progress_;    ///< null: nothing is printed
  std::unique_ptr<pdes::Kernel> kernel_;
  double wall_seconds_ = 0;
  bool excess_is_error_;
  Checkpoints* checkpoints_;
  Span span_;
  std::function<bool()> stop_requested_;  ///< for good, not for a checkpoint
  bool are_npus_done_ = false;            ///< at the last stop: what is left then is not stopped
  bool is_diverging_ = false;             ///< some rank knew of a divergence at the last stop
  std::optional<Time> stopped_at_;
};

/// Simulates a prepared run. A folded run whose assumptions turn out to be wrong is folded again and goes on from
/// there. Collective. Throws as Simulation::run.
std::unique_ptr<Simulation> simulate(Preparation& preparation, const config::RunOptions& options,
                                     const std::function<bool()>& stop_requested, parallel::Communicator& world,
                                     Checkpoints* checkpoints = nullptr);

}  // namespace orrery::run
