#pragma once

#include <chrono>
#include <cstdint>

#include "orrery/config/configuration.hpp"
#include "orrery/model/rank_model.hpp"

namespace orrery::app {

/// Says on standard error now and then how far rank 0 is.
class ProgressLine {
 public:
  /// `num_nodes`: of all iterations of this rank's NPUs.
  ProgressLine(const config::RunOptions& options, const model::RankModel& model, std::uint64_t num_nodes);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Cheap until the interval is over.
  void update(std::uint64_t events, Time now);

 private:
  using Clock = std::chrono::steady_clock;

  const model::RankModel& model_;
  std::uint64_t num_nodes_;
  bool renews_;  ///< one line that renews itself
  bool shown_ = false;
  std::chrono::duration<double> interval_;
  Clock::time_point start_, last_;
  std::uint64_t last_events_ = 0;
};

}  // namespace orrery::app
