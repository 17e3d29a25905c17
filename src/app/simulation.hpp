#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/configuration.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/pdes/kernel.hpp"
#include "preparation.hpp"

namespace orrery::app {

/// The run itself, from time 0 until nothing can happen any more.
class Simulation {
 public:
  /// `stop_requested` is asked now and then: see pdes::Options.
  Simulation(Preparation& preparation, const config::RunOptions& options, std::function<bool()> stop_requested,
             parallel::Communicator& world);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// Collective. Throws Error (stuck) on rank 0, with what the unfinished NPUs wait for, if not all of them finish, and
  /// Error (bad_input) on one rank if an NPU leaves the range of simulated time, or exceeds its local memory where
  /// that is an error.
  void run();
  /// The time at which a requested stop ended the run before all NPUs were done.
  std::optional<Time> stopped_at() const { return stopped_at_; }

  const model::RankModel& model() const { return model_; }
  const pdes::Statistics& kernel_statistics() const { return kernel_->statistics(); }
  double wall_seconds() const { return wall_seconds_; }

 private:
  Preparation& preparation_;
  parallel::Communicator& world_;
  model::RankModel model_;
  std::unique_ptr<pdes::Kernel> kernel_;
  double wall_seconds_ = 0;
  bool excess_is_error_;
  std::optional<Time> stopped_at_;
};

}  // namespace orrery::app
