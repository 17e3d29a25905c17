#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace orrery {

/// Tells other threads whether the thread that carries out a job makes progress. That thread writes, any thread reads.
class Heartbeat {
 public:
  /// Notes progress: a part of the work is done, or another rank has sent something. The next beat may come
  /// `allowance` seconds later than usual. A few instructions.
  void beat(std::uint32_t allowance = 0) {
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    allowance_.store(allowance, std::memory_order_relaxed);
  }
  /// Says whether nothing can be done until other ranks have done something.
  void set_waiting_for_ranks(bool waits) { waits_for_ranks_.store(waits, std::memory_order_relaxed); }

  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  std::uint32_t allowance() const { return allowance_.load(std::memory_order_relaxed); }
  bool waits_for_ranks() const { return waits_for_ranks_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint32_t> allowance_{0};
  std::atomic<bool> waits_for_ranks_{false};
};

/// Requests to end a job early and in order: by `request`, or because its time is over.
class StopRequest {
 public:
  using Clock = std::chrono::steady_clock;

  /// Requests a stop. `reason` is part of messages and outlives this object: "SIGTERM". Any thread and any signal
  /// handler may call it.
  void request(const char* reason) { reason_.store(reason); }
  /// Requests a stop when 0.99 of `seconds` has passed since `start`; 0 or less: never.
  void set_time_limit(double seconds, Clock::time_point start);

  /// Returns whether a stop is requested. Any thread may call it.
  bool is_requested();
  /// Returns the reason of the stop that `is_requested` has seen, such as "the wall-time limit"; empty if there is
  /// none.
  const char* reason() const;
  /// Throws Error (interrupted) if a stop is requested. For use while there is no result to keep. The message says
  /// before what the job ends: "the simulation began".
  void end_if_requested(std::string_view before);

 private:
  std::atomic<const char*> reason_{nullptr};
  std::atomic<Clock::rep> limit_{std::numeric_limits<Clock::rep>::max()};  // since the clock's epoch
  std::atomic<bool> is_out_of_time_{false};
  static_assert(std::atomic<const char*>::is_always_lock_free, "a signal handler uses it");
};

/// The partial files of a job, which are to be removed if it ends without the end of its objects (PartialFile).
class PartialFiles {
 public:
  void add(const std::filesystem::path& file);
  void drop(const std::filesystem::path& file);
  /// Removes all files. Any thread may call it.
  void remove_all();

 private:
  std::mutex mutex_;
  std::multiset<std::filesystem::path> names_;
};

/// What a job does, for messages about one that makes no progress.
enum class JobPhase : std::uint8_t {
  preparing,   ///< reading, or other work by whose end nothing is lost
  simulating,  ///< running the kernel, which has its own watchdog
  saving,      ///< writing a checkpoint
  writing,     ///< writing results
  ending,      ///< ending MPI after the results were written
};

/// Messages of a job to its user. Without a sink they are dropped.
class Log {
 public:
  enum class Level : std::uint8_t { info, warning, error };
  using Sink = std::function<void(Level, const std::string& text)>;

  void set_sink(Sink sink) { sink_ = std::move(sink); }
  void info(const std::string& text) const { put(Level::info, text); }
  void warn(const std::string& text) const { put(Level::warning, text); }
  void error(const std::string& text) const { put(Level::error, text); }

 private:
  void put(Level level, const std::string& text) const {
    if (sink_) sink_(level, text);
  }

  Sink sink_;
};

/// The state of one job of a process, such as a simulation: everything that would otherwise belong to the process. The
/// caller makes it, and makes it the current one of the thread that carries the job out:
///
///     JobContext job;
///     job.log.set_sink([](Log::Level, const std::string& text) { std::cerr << text << '\n'; });
///     const JobContext::Scope scope(job);
///     run::simulate(configuration, world);
///
/// Layers that have no other access to their job find it by `current`. Without a current job they work too, but nobody
/// can watch them, stop them or see their messages.
class JobContext {
 public:
  JobContext() = default;
  JobContext(const JobContext&) = delete;
  JobContext& operator=(const JobContext&) = delete;

  Heartbeat heartbeat;
  StopRequest stop;
  PartialFiles partial_files;
  Log log;

  /// Says what the job does from now on. Waits for ever if another thread has locked the job to end it (`lock`).
  void enter(JobPhase phase);
  JobPhase phase() const { return phase_.load(); }
  /// Sets for how many seconds the job may make no progress; 0: for ever.
  void set_watchdog(double seconds) { watchdog_s_ = seconds; }
  double watchdog_s() const { return watchdog_s_.load(); }
  /// Names the checkpoint from which the job can be resumed; empty: none.
  void set_checkpoint(std::string file);

  /// Keeps the job from entering another phase while the lock lives. Returns the checkpoint too.
  std::pair<std::unique_lock<std::mutex>, std::string> lock();

  /// Returns the job of this thread; null if there is none.
  static JobContext* current() { return current_; }

  /// Makes a job the current one of this thread while it lives.
  class Scope {
   public:
    explicit Scope(JobContext& job) : outer_(std::exchange(current_, &job)) {}
    ~Scope() { current_ = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    JobContext* outer_;
  };

 private:
  static inline constinit thread_local JobContext* current_ = nullptr;

  std::atomic<JobPhase> phase_{JobPhase::preparing};
  std::atomic<double> watchdog_s_{300};
  std::mutex mutex_;
  std::string checkpoint_;  // under the mutex
};

/// Notes progress of the current job, if there is one.
inline void beat(std::uint32_t allowance = 0) {
  if (JobContext* const job = JobContext::current()) job->heartbeat.beat(allowance);
}

/// Says what the current job, if there is one, does from now on (JobContext::enter).
inline void enter_phase(JobPhase phase) {
  if (JobContext* const job = JobContext::current()) job->enter(phase);
}

/// Returns the log of the current job; one that drops all messages if there is none.
inline const Log& job_log() {
  static const Log silent;
  const JobContext* const job = JobContext::current();
  return job ? job->log : silent;
}

/// Throws Error (interrupted) if the current job is to stop (StopRequest::end_if_requested).
inline void end_if_stopped(std::string_view before = "the simulation began") {
  if (JobContext* const job = JobContext::current()) job->stop.end_if_requested(before);
}

/// While it lives, the current job can do nothing until other ranks have done something. Its end is a beat.
class WaitForRanks {
 public:
  WaitForRanks() {
    if (job_) job_->heartbeat.set_waiting_for_ranks(true);
  }
  ~WaitForRanks() {
    if (!job_) return;
    job_->heartbeat.set_waiting_for_ranks(false);
    job_->heartbeat.beat();
  }
  WaitForRanks(const WaitForRanks&) = delete;
  WaitForRanks& operator=(const WaitForRanks&) = delete;

 private:
  JobContext* job_ = JobContext::current();
};

}  // namespace orrery
