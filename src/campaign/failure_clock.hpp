#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "orrery/campaign/draws.hpp"
#include "orrery/campaign/setup.hpp"
#include "slots.hpp"

namespace orrery::campaign {

/// What ended a stretch of time.
struct Strike {
  Nanoseconds elapsed = 0;
  std::int32_t process = -1;  ///< -1: nothing failed
  std::vector<std::uint32_t> hosts;
};

/// The failure processes of a replication and the exposure to them (R2, R3).
class FailureClock {
 public:
  FailureClock(const Setup& setup, const Draws& draws, const Slots& slots);

  /// Lets time pass from `now` until `most` or a failure.
  Strike advance(Nanoseconds now, Nanoseconds most, bool is_running);
  /// Notes that a host has entered the job, or has left it. A unit of process `failed` of the host is a new one then;
  /// -1: all units keep their ages.
  void entered(std::uint32_t host);
  void left(std::uint32_t host, std::int32_t failed);
  /// Gives hosts that failed and stay a new component.
  void renew(std::int32_t process, const std::vector<std::uint32_t>& hosts);

  /// Returns how often each process has struck by a draw, which is part of the key of draws.
  const std::vector<std::uint64_t>& counts() const { return counts_; }
  std::uint64_t unseen() const { return unseen_; }

 private:
  /// The units of a process whose ages count.
  struct Lives {
    using End = std::pair<Nanoseconds, std::uint32_t>;  // on the clock of exposure, unit

    std::uint32_t process = 0, units_per_host = 1;
    Nanoseconds clock = 0;
    std::priority_queue<End, std::vector<End>, std::greater<>> ends;
    std::vector<Nanoseconds> at;       ///< [units] end on the clock while the host is in the job, else what is left
    std::vector<std::uint32_t> drawn;  ///< [units] lives so far
    std::uint32_t failed_unit = 0;     ///< unit of the last strike
  };

  double rate(const Process& process, bool is_running) const;
  std::vector<std::uint32_t> victim(std::uint32_t process);
  Nanoseconds draw_life(Lives& lives, std::uint32_t unit);
  void draw_budget(std::uint32_t process);
  /// Returns the position in lives_ of a process; -1 if its failures are exponential.
  std::int32_t lives_of(std::int32_t process) const {
    return process < 0 ? -1 : position_[static_cast<std::size_t>(process)];
  }
  /// Returns whether a recorded failure strikes the job. It did happen, so that the process's exposure does not matter.
  bool strikes(const Recorded& failure) const;
  /// Removes ends from the queue that hold no longer.
  void drop_stale(Lives& lives) const;
  void pass(Nanoseconds elapsed, bool is_running);

  const Setup& setup_;
  const Draws& draws_;
  const Slots& slots_;
  std::vector<std::uint64_t> counts_;
  std::vector<double> budgets_, rates_;  // [processes] rates in 1/ns
  std::vector<std::int32_t> position_;   // [processes] in lives_
  std::vector<Lives> lives_;
  std::size_t next_recorded_ = 0;
  std::uint64_t unseen_ = 0;
};

}  // namespace orrery::campaign
