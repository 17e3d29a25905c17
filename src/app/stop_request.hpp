#pragma once

#include <chrono>
#include <functional>

namespace orrery::app {

/// Lets SIGTERM, SIGINT and SIGUSR1 (a batch system's warning before the time limit) ask the run to stop in order. A
/// second signal of the same kind does what it always did: it ends the process at once. For the rest of the process's
/// life.
void heed_signals();

/// True once a signal has come, or 0.99 of `max_walltime_s` (0: no limit) has passed since `start`.
std::function<bool()> stop_request(double max_walltime_s, std::chrono::steady_clock::time_point start);

/// Before the simulation, where nothing is known yet: throws Error (interrupted) once a signal has come to this rank.
void end_if_signalled();

/// "SIGTERM", "SIGINT", "SIGUSR1", "the wall-time limit": what `stop_request` has seen on this rank; empty if nothing.
const char* stop_reason();

}  // namespace orrery::app
