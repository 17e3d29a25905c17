#include "stop_request.hpp"

#include <csignal>
#include <optional>

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::app {
namespace {

// It is global because a signal handler has no other data.
volatile std::sig_atomic_t received = 0;
std::optional<std::chrono::steady_clock::time_point> limit;  // of a run that has one
bool out_of_time = false;

bool is_stopped() {
  if (limit && std::chrono::steady_clock::now() >= *limit) out_of_time = true;
  return received != 0 || out_of_time;
}

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
  if (max_walltime_s > 0)
    limit = start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                        std::chrono::duration<double>(0.99 * max_walltime_s));
  return is_stopped;
}

void end_if_stopped() {
  if (!is_stopped()) return;
  throw Error(ErrorCode::interrupted, {}, fmt::format("stopped by {} before the simulation began", stop_reason()), {},
              "No results are written, and none replaced. The same command runs again from the start.");
}

const char* stop_reason() {
  if (received == SIGTERM) return "SIGTERM";
  if (received == SIGINT) return "SIGINT";
  if (received == SIGUSR1) return "SIGUSR1";
  return out_of_time ? "the wall-time limit" : "";
}

}  // namespace orrery::app
