#include "stop_guard.hpp"

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
#include <spdlog/spdlog.h>

#include "orrery/base/error.hpp"
#include "orrery/base/host.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/signs_of_life.hpp"
#include "orrery/parallel/environment.hpp"
#include "stop_request.hpp"

namespace orrery::app {
namespace {

using GuardSeconds = std::chrono::duration<double>;

constexpr auto between_looks = std::chrono::milliseconds(50);
constexpr double usual_patience_s = 30;
constexpr double seconds_between_ranks = 3;  // MPI has ended the job by then
constexpr int most_places = 5;               // of ranks that do not speak in one moment
constexpr unsigned seconds_to_abort_job = 5;

/// What the main thread tells the guard.
struct Guarded {
  std::atomic<RunPhase> phase{RunPhase::preparing};
  std::atomic<double> watchdog_s{300};
  int rank = 0;
  std::mutex mutex;
  std::string checkpoint;  // under the mutex
  std::condition_variable end;
  bool is_over = false;
  std::thread thread;
};

// Never destroyed, because the process may end while the thread lives.
Guarded& guarded = *new Guarded;

std::string_view doing(RunPhase phase) {
  switch (phase) {
    case RunPhase::preparing:
      return "before or after the simulation";
    case RunPhase::simulating:
      return "in the simulation";
    case RunPhase::saving:
      return "while a checkpoint was written";
    case RunPhase::writing:
      return "while results were written";
    case RunPhase::ending:
      return "after the results were written";
  }
  return "";
}

/// Says what the user has. For the thread, which holds the mutex.
std::string what_is_left(RunPhase phase) {
  if (phase == RunPhase::ending) return "The results are complete.";
  return "No results are written, and none replaced." +
         (guarded.checkpoint.empty() ? "" : fmt::format(" --restart={} goes on.", guarded.checkpoint));
}

int exit_code_after_alarm = 0;

extern "C" void exit_after_alarm(int) { ::_exit(exit_code_after_alarm); }

/// Ends the job from the guard's thread, whatever the main thread does.
[[noreturn]] void end_job(ErrorCode code, const std::string& message) {
  remove_partial_files();
  spdlog::error("{}", message);
  exit_code_after_alarm = static_cast<int>(code);
  std::signal(SIGALRM, exit_after_alarm);
  ::alarm(seconds_to_abort_job);  // MPI may not end
  parallel::Environment::abort(static_cast<int>(code));
}

/// Looks at the main thread, and adds up for how long it has shown nothing.
class GuardedLook {
 public:
  /// Takes note of one look, and ends the job if it is time. `passed`: seconds since the last one.
  void look(double passed) {
    // A process that was suspended has not waited in vain.
    const double counted = std::min(passed, 4 * std::chrono::duration<double>(between_looks).count());
    elapsed_s_ += counted;
    const RunPhase phase = guarded.phase.load();
    const bool stops = is_stop_requested();
    if (SignsOfLife::count() != seen_ || phase != phase_ || stops != stops_) silent_s_ = 0;
    silent_s_ += counted;
    seen_ = SignsOfLife::count();
    phase_ = phase;
    stops_ = stops;
    const double in_turn = seconds_between_ranks * std::min(guarded.rank, most_places);
    const double silent = silent_s_ - in_turn - SignsOfLife::allowance();
    const double watchdog = guarded.watchdog_s.load();
    if (stops)
      end_stopped(silent, watchdog);
    else if (watchdog > 0)
      end_silent(silent, watchdog);
  }

 private:
  void end_stopped(double silent, double watchdog) const {
    double patience = watchdog > 0 ? watchdog / 10 : usual_patience_s;
    if (phase_ == RunPhase::saving) patience *= 10;
    if (silent < patience) return;
    end_job(ErrorCode::interrupted,
            fmt::format("stopped by {}, but rank {} on {} has seen nothing get on for {:g} s {}. {} A process may be "
                        "suspended, or a disk may not answer.",
                        stop_reason(), guarded.rank, host_name(), patience, doing(phase_), what_is_left(phase_)));
  }

  void end_silent(double silent, double watchdog) const {
    if (phase_ == RunPhase::writing && silent >= watchdog)
      end_job(ErrorCode::output,
              fmt::format("no results can be written: rank {} on {} has seen nothing get on for {:g} s "
                          "(run.watchdog). A process may be suspended, or a disk may not answer.",
                          guarded.rank, host_name(), watchdog));
    const bool waits = phase_ == RunPhase::ending || (phase_ == RunPhase::preparing && SignsOfLife::waits_for_ranks());
    if (!waits || silent < watchdog + (phase_ == RunPhase::ending ? 0 : elapsed_s_ - silent_s_)) return;
    end_job(ErrorCode::internal,
            fmt::format("rank {} on {} has waited {:.0f} s for other ranks {} (run.watchdog). {} A process may be "
                        "suspended, or the network may have lost a message.",
                        guarded.rank, host_name(), silent, doing(phase_), what_is_left(phase_)));
  }

  double elapsed_s_ = 0, silent_s_ = 0;
  std::uint64_t seen_ = 0;
  RunPhase phase_ = RunPhase::preparing;
  bool stops_ = false;
};

void keep_looking() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigdelset(&all, SIGALRM);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  GuardedLook guard;
  std::unique_lock lock(guarded.mutex);
  for (auto last = std::chrono::steady_clock::now(); !guarded.is_over;) {
    guarded.end.wait_for(lock, between_looks);
    const auto now = std::chrono::steady_clock::now();
    if (!guarded.is_over) guard.look(GuardSeconds(now - last).count());
    last = now;
  }
}

}  // namespace

StopGuard::~StopGuard() {
  if (!guarded.thread.joinable()) return;
  {
    const std::scoped_lock lock(guarded.mutex);
    guarded.is_over = true;
  }
  guarded.end.notify_one();
  guarded.thread.join();
}

void StopGuard::start(Rank here) {
  if (guarded.thread.joinable()) return;
  guarded.rank = here.value();
  try {
    guarded.thread = std::thread(keep_looking);
  } catch (const std::system_error&) {  // the run goes on without
  }
}

void StopGuard::set_watchdog(double seconds) { guarded.watchdog_s = seconds; }

void StopGuard::set_checkpoint(std::string file) {
  const std::scoped_lock lock(guarded.mutex);
  guarded.checkpoint = std::move(file);
}

// A guard that ends the job never gives the mutex back, so that no file is begun after those that it has removed.
void StopGuard::enter(RunPhase phase) {
  const std::scoped_lock lock(guarded.mutex);
  guarded.phase = phase;
  SignsOfLife::give();
}

}  // namespace orrery::app
