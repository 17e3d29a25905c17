#pragma once

#include <chrono>
#include <functional>

namespace orrery::app {

/// Makes SIGTERM, SIGINT and SIGUSR1 (a batch system's warning before the time limit) request an orderly stop, for the
/// rest of the life of the process. A second signal of the same kind has its default effect and ends the process.
void heed_signals();

/// Returns whether a signal has come, or 0.99 of `max_walltime_s` (0: no limit) has passed since `start`.
std::function<bool()> stop_request(double max_walltime_s, std::chrono::steady_clock::time_point start);

/// Returns what the function of `stop_request` returns, without a limit before its first call. Any thread may call it.
bool is_stop_requested();

/// Throws Error (interrupted) if a signal has come to this rank, or the time of `stop_request` has passed. For use
/// before the simulation, when there is no result to keep.
void end_if_stopped();

/// Returns the reason of the stop that `stop_request` has seen on this rank: "SIGTERM", "SIGINT", "SIGUSR1" or "the
/// wall-time limit"; empty if there is none.
const char* stop_reason();

}  // namespace orrery::app
