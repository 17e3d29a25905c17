#pragma once

#include <cstdint>
#include <vector>

#include "checkpoints.hpp"
#include "failure_clock.hpp"
#include "hosts.hpp"
#include "orrery/campaign/draws.hpp"
#include "orrery/campaign/replication.hpp"

namespace orrery::campaign {

/// Books the time of a replication.
class Ledger {
 public:
  Ledger(const Setup& setup, const Hosts& hosts, const Watch& watch);

  Nanoseconds now() const { return row_.time; }
  Nanoseconds left() const { return duration_ - row_.time; }
  bool is_over() const { return row_.time >= duration_; }
  Row& row() { return row_; }
  const Row& row() const { return row_; }

  /// Lets time pass in a state, as far as the duration goes. Time of a process other than -1 is a cost of it.
  void pass(State state, Nanoseconds time, std::int32_t process);
  /// Lets time pass in which the job runs: work, stalls of checkpoints, and what is missing because it is slow.
  void run(Nanoseconds worked, Nanoseconds stalled, Nanoseconds slow, std::int32_t slow_by);
  /// Books work that was done and is to be done again.
  void lose(Nanoseconds work, std::int32_t process);
  /// Returns the row, whose states add up to its time.
  Row finish();

 private:
  void book(State state, Nanoseconds time, std::int32_t process);
  void watch(State state, Nanoseconds time, std::int32_t process);

  const Hosts& hosts_;
  const Watch& watch_;
  Nanoseconds duration_;
  Period period_;
  Row row_;
};

/// The state machine of one replication (docs/campaign.md, R1 to R12).
class Machine {
 public:
  Machine(const Setup& setup, std::uint64_t replication, const Watch& watch);

  /// Runs from the beginning to the end.
  Row run();

 private:
  /// A straggler that has not been found yet.
  struct Straggler {
    std::int32_t process = -1;  ///< -1: there is none
    double speed = 1;
    Nanoseconds found = longest;
    std::vector<std::uint32_t> hosts;
  };
  /// A silent corruption that has not been found yet.
  struct Corruption {
    std::int32_t process = -1;
    Nanoseconds progress = 0, found = longest;
    std::vector<std::uint32_t> hosts;
  };

  const Process& process(std::int32_t f) const { return setup_.processes[static_cast<std::size_t>(f)]; }
  bool is_done() const { return progress_ >= setup_.work || ledger_.is_over() || ledger_.row().depleted; }
  double speed() const { return straggler_.speed * replica_speed_; }

  // Each returns whether the job can go on; false where no host is left, or the time is over.
  bool begin();
  bool acquire(std::int32_t f);
  bool select(bool shrink, std::int32_t f);
  bool replace(const std::vector<std::uint32_t>& hosts, std::int32_t f);
  bool phase(State state, Nanoseconds length, std::int32_t f);
  bool struck(std::int32_t f, std::vector<std::uint32_t> hosts);
  bool recover(std::int32_t f, const std::vector<std::uint32_t>& hosts);
  bool recover_from_corruption();
  bool replace_straggler();
  bool pause(std::int32_t f);
  bool grow();

  Strike run_on();
  Strike stall();
  Strike work_slowly();
  Strike work_fast();
  Strike take_final_checkpoint();
  bool handle(const Strike& strike);
  void note_silent(const Strike& strike);
  void note_straggler(const Strike& strike);

  Strike advance(Nanoseconds most, bool is_running);
  void enter(std::uint32_t slot, std::uint32_t host);
  void leave(std::uint32_t host, std::int32_t failed);
  /// Returns the time until a straggler or a corruption is found, or the campaign is over.
  Nanoseconds until_change() const;
  Nanoseconds detection(std::int32_t f) const;
  Nanoseconds restart_time() const;
  /// Returns the time to read the checkpoint.
  Nanoseconds roll_back(std::int32_t f, Nanoseconds before);

  const Setup& setup_;
  Draws draws_;
  Hosts hosts_;
  FailureClock clock_;
  Checkpoints checkpoints_;
  Ledger ledger_;
  Nanoseconds progress_ = 0, stall_left_ = 0;
  double replica_speed_ = 1;
  std::int32_t shrunk_by_ = -1;
  bool may_grow_ = false;  // a stall has just ended
  Straggler straggler_;
  Corruption corruption_;
};

}  // namespace orrery::campaign
