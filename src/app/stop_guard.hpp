#pragma once

#include <string>

#include "orrery/base/ids.hpp"

namespace orrery::app {

/// What a run does, as the guard sees it.
enum class RunPhase {
  preparing,   ///< it reads, or does something else by which nothing is lost if it ends
  simulating,  ///< the kernel has its own watchdog
  saving,      ///< it writes a checkpoint
  writing,     ///< it writes results
  ending,      ///< the results are written, and MPI ends
};

/// Ends this process, and with it the job, if a run can no longer end in order: a rank is suspended, or a disk does not
/// answer. A thread looks 20 times a second for signs of life of the main thread and counts the time in which there
/// was none. Time in which this process was suspended itself does not count. It ends the run
/// - when a stop was requested (stop_request.hpp) and there was no sign for a tenth of the watchdog's time (30 s if it
///   is 0), or ten times as long while a checkpoint is written: exit code 75;
/// - when a run waits for other ranks before or after the simulation for longer than the watchdog's time and the time
///   since its start: exit code 1;
/// - when results are written and there was no sign for the watchdog's time: exit code 5.
/// Partial files of this job are removed first. Only one rank speaks, because each waits 3 s longer than the one
/// before.
class StopGuard {
 public:
  /// Makes a guard that does nothing before `start`.
  StopGuard() = default;
  /// Ends the thread.
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

  /// Starts the thread on this rank. There is one guard in a process. If the system has no thread left, there is none.
  static void start(Rank here);
  /// Sets the time of the watchdog; 0: never.
  static void set_watchdog(double seconds);
  /// Names the checkpoint from which a run that is ended can go on; empty: none.
  static void set_checkpoint(std::string file);
  /// Says what the main thread does from now on. Does not return if the guard ends the job.
  static void enter(RunPhase phase);
};

}  // namespace orrery::app
