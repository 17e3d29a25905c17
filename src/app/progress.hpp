#pragma once

#include <chrono>
#include <cstdint>

#include "orrery/config/configuration.hpp"
#include "orrery/model/rank_model.hpp"

namespace orrery::app {

/// Prints on standard error from time to time which share of its nodes rank 0 has completed.
class ProgressLine {
 public:
  /// `num_nodes`: of all iterations of this rank's NPUs.
  ProgressLine(const config::RunOptions& options, const model::RankModel& model, std::uint64_t num_nodes);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Prints if the interval is over. Cost O(1) before that.
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
