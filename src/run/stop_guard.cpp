#include "orrery/run/stop_guard.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/host.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/parallel/environment.hpp"

namespace orrery::run {
namespace {

using GuardSeconds = std::chrono::duration<double>;

constexpr auto between_looks = std::chrono::milliseconds(50);
constexpr double usual_patience_s = 30;
constexpr double seconds_between_ranks = 3;  // MPI has ended the job by then
constexpr int most_places = 5;               // of ranks that do not speak in one moment
constexpr unsigned seconds_to_abort_job = 5;

std::string_view doing(JobPhase phase) {
  switch (phase) {
    case JobPhase::preparing:
      return "before or after the simulation";
    case JobPhase::simulating:
      return "in the simulation";
    case JobPhase::saving:
      return "while a checkpoint was written";
    case JobPhase::writing:
      return "while results were written";
    case JobPhase::ending:
      return "after the results were written";
  }
  return "";
}

/// Says what the user has.
std::string what_is_left(JobPhase phase, std::string_view checkpoint) {
  if (phase == JobPhase::ending) return "The results are complete.";
  return "No results are written, and none replaced." +
         (checkpoint.empty() ? "" : fmt::format(" --restart={} goes on.", checkpoint));
}

int exit_code_after_alarm = 0;

extern "C" void exit_after_alarm(int) { ::_exit(exit_code_after_alarm); }

}  // namespace

/// Looks at the thread that carries out the job, and adds up for how long it has made no progress.
class StopGuard::Look {
 public:
  Look(JobContext& job, Rank here) : job_(job), here_(here) {}

  /// Takes note of one look, and ends the job if it is time. `passed`: seconds since the last one.
  void look(double passed) {
    // A process that was suspended has not waited in vain.
    const double counted = std::min(passed, 4 * std::chrono::duration<double>(between_looks).count());
    elapsed_s_ += counted;
    const JobPhase phase = job_.phase();
    const bool stops = job_.stop.is_requested();
    if (job_.heartbeat.count() != seen_ || phase != phase_ || stops != stops_) silent_s_ = 0;
    silent_s_ += counted;
    seen_ = job_.heartbeat.count();
    phase_ = phase;
    stops_ = stops;
    const double in_turn = seconds_between_ranks * std::min(here_.value(), most_places);
    const double silent = silent_s_ - in_turn - job_.heartbeat.allowance();
    const double watchdog = job_.watchdog_s();
    if (stops)
      end_stopped(silent, watchdog);
    else if (watchdog > 0)
      end_silent(silent, watchdog);
  }

 private:
  void end_stopped(double silent, double watchdog) const {
    double patience = watchdog > 0 ? watchdog / 10 : usual_patience_s;
    if (phase_ == JobPhase::saving) patience *= 10;
    if (silent < patience) return;
    end_job(ErrorCode::interrupted, [&](const std::string& left) {
      return fmt::format(
          "stopped by {}, but rank {} on {} has seen nothing get on for {:g} s {}. {} A process may be "
          "suspended, or a disk may not answer.",
          job_.stop.reason(), here_.value(), host_name(), patience, doing(phase_), left);
    });
  }

  void end_silent(double silent, double watchdog) const {
    if (phase_ == JobPhase::writing && silent >= watchdog)
      end_job(ErrorCode::output, [&](const std::string&) {
        return fmt::format(
            "no results can be written: rank {} on {} has seen nothing get on for {:g} s "
            "(run.watchdog). A process may be suspended, or a disk may not answer.",
            here_.value(), host_name(), watchdog);
      });
    const bool waits =
        phase_ == JobPhase::ending || (phase_ == JobPhase::preparing && job_.heartbeat.waits_for_ranks());
    if (!waits || silent < watchdog + (phase_ == JobPhase::ending ? 0 : elapsed_s_ - silent_s_)) return;
    end_job(ErrorCode::internal, [&](const std::string& left) {
      return fmt::format(
          "rank {} on {} has waited {:.0f} s for other ranks {} (run.watchdog). {} A process may be "
          "suspended, or the network may have lost a message.",
          here_.value(), host_name(), silent, doing(phase_), left);
    });
  }

  /// Ends the job from the guard's thread, whatever the job's thread does. The job stays locked, so that no file is
  /// begun after those that are removed here.
  template <class Message>
  void end_job(ErrorCode code, Message message) const {
    const auto locked = job_.lock();
    if (job_.phase() != phase_) return;  // it has made progress meanwhile
    job_.partial_files.remove_all();
    job_.log.error(message(what_is_left(phase_, locked.second)));
    exit_code_after_alarm = static_cast<int>(code);
    std::signal(SIGALRM, exit_after_alarm);
    ::alarm(seconds_to_abort_job);  // MPI may not end
    parallel::Environment::abort(static_cast<int>(code));
  }

  JobContext& job_;
  Rank here_;
  double elapsed_s_ = 0, silent_s_ = 0;
  std::uint64_t seen_ = 0;
  JobPhase phase_ = JobPhase::preparing;
  bool stops_ = false;
};

StopGuard::~StopGuard() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  end_.notify_one();
  thread_.join();
}

void StopGuard::start(Rank here) {
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this, here] { keep_looking(here); });
  } catch (const std::system_error&) {  // the run continues without
  }
}

void StopGuard::keep_looking(Rank here) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigdelset(&all, SIGALRM);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  Look guard(job_, here);
  std::unique_lock lock(mutex_);
  for (auto last = std::chrono::steady_clock::now(); !is_over_;) {
    end_.wait_for(lock, between_looks);
    const auto now = std::chrono::steady_clock::now();
    if (!is_over_) guard.look(GuardSeconds(now - last).count());
    last = now;
  }
}

}  // namespace orrery::run
