#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "orrery/campaign/setup.hpp"

namespace orrery::campaign {

/// What the job spends its time on. The times of all states add up to the wall time.
enum class State : std::uint8_t { useful, lost, stall, detect, wait, select, restart, slow, pause };
inline constexpr std::size_t num_states = 9;
inline constexpr std::array<std::string_view, num_states> state_names = {"useful", "lost",    "stall", "detect", "wait",
                                                                         "select", "restart", "slow",  "pause"};

/// The results of one replication.
struct Row {
  Nanoseconds time = 0;
  std::array<Nanoseconds, num_states> times{};
  std::vector<Nanoseconds> by_process;     ///< [processes][num_states] time that each process cost
  std::vector<std::uint64_t> failures_of;  ///< [processes]
  double allocated = 0;                    ///< seconds of active and standby hosts
  std::uint64_t failures = 0, selections = 0, spares = 0, retired = 0, restarts = 0, unseen = 0;
  bool depleted = false;

  Nanoseconds in(State state) const { return times[static_cast<std::size_t>(state)]; }
  double ettr() const { return time == 0 ? 0 : seconds(in(State::useful)) / seconds(time); }
  /// Returns the share of allocated host time that is useful. `active`: hosts that the job needs.
  double goodput(double active) const { return allocated == 0 ? 0 : seconds(in(State::useful)) * active / allocated; }

  friend bool operator==(const Row&, const Row&) = default;
};

/// A time in which the job did one thing.
struct Period {
  Nanoseconds begin = 0, end = 0;
  State state = State::useful;
  std::int32_t process = -1;  ///< failure process that caused it; -1: none
  std::uint32_t hosts = 0;    ///< working hosts
};

/// Called for each period of a replication, in order. Checkpoints in running periods are not told apart.
using Watch = std::function<void(const Period&)>;

/// Simulates one replication: a state machine that jumps from failure to failure. The result depends on the setup and
/// the number of the replication alone. Cost O(hosts + failures * (processes + log hosts)).
Row replicate(const Setup& setup, std::uint64_t replication, const Watch& watch = {});

}  // namespace orrery::campaign
