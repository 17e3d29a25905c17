#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "orrery/base/ids.hpp"
#include "orrery/base/job_context.hpp"

namespace orrery::run {

/// Ends this process, and with it all ranks, if a job can no longer end in order: a rank is suspended, or a disk does
/// not answer. A thread looks 20 times a second whether the job has made progress (JobContext::heartbeat), and counts
/// the time in which it has not. Time in which this process was suspended itself does not count. The guard ends the job
/// - when a stop was requested (JobContext::stop) and there was no progress for a tenth of the watchdog's time (30 s if
///   it is 0), or ten times as long while a checkpoint is written: exit code 75;
/// - when the job waits for other ranks before or after the simulation for longer than the watchdog's time and the time
///   since its start: exit code 1;
/// - when results are written and there was no progress for the watchdog's time: exit code 5.
/// Partial files of the job are removed first. Only one rank speaks, because each waits 3 s longer than the one before.
class StopGuard {
 public:
  /// Makes a guard that does nothing before `start`. The job outlives it.
  explicit StopGuard(JobContext& job) : job_(job) {}
  /// Ends the thread.
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

  /// Starts the thread on this rank, unless it runs. If the system has no thread left, there is none.
  void start(Rank here);

 private:
  class Look;

  void keep_looking(Rank here);

  JobContext& job_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace orrery::run
