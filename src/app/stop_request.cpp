#include "stop_request.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::app {
namespace {

using StopClock = std::chrono::steady_clock;

// They are global because a signal handler has no other data, and atomic because StopGuard's thread reads them.
std::atomic<int> received = 0;
std::atomic<StopClock::rep> limit = std::numeric_limits<StopClock::rep>::max();  // since the clock's epoch
std::atomic<bool> out_of_time = false;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void note_signal(int signal) {
  received = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void heed_signals() {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1})
    if (std::signal(signal, note_signal) == SIG_IGN) std::signal(signal, SIG_IGN);  // a shell's background job
}

std::function<bool()> stop_request(double max_walltime_s, std::chrono::steady_clock::time_point start) {
  if (max_walltime_s > 0) {
    const auto end =
        start + std::chrono::duration_cast<StopClock::duration>(std::chrono::duration<double>(0.99 * max_walltime_s));
    limit = end.time_since_epoch().count();
  }
  return is_stop_requested;
}

bool is_stop_requested() {
  if (StopClock::now().time_since_epoch().count() >= limit.load(std::memory_order_relaxed)) out_of_time = true;
  return received != 0 || out_of_time;
}

void end_if_stopped() {
  if (!is_stop_requested()) return;
  throw Error(ErrorCode::interrupted, {}, fmt::format("stopped by {} before the simulation began", stop_reason()), {},
              "No results are written, and none replaced. Give the same command again.");
}

const char* stop_reason() {
  switch (received) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      break;
  }
  return out_of_time ? "the wall-time limit" : "";
}

}  // namespace orrery::app
