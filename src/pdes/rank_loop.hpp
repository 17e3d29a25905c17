#pragma once

#include <chrono>
#include <cstdint>

#include "channels.hpp"
#include "orrery/pdes/kernel.hpp"

namespace orrery::pdes {

/// The loop of a rank among others. It is a state machine:
///
///     working  -- nothing was safe to handle -->                       informed
///     informed -- this rank has told others what it can promise -->    waiting
///     waiting  -- a message came, or a reduction ended -->             informed
///     informed, waiting  -- an event became safe -->                   working
///
/// A rank that works handles events in bursts. Between bursts it takes in messages, sends what has gathered, and
/// answers those who asked. A rank that is blocked (informed or waiting) asks those neighbours whose promises block
/// it once it has waited for longer than its patience; a question travels with data that leaves while patience is
/// least. A chain of waiting ranks passes the question on. A circle of them, or the end of the run, shows in the
/// reduction that all blocked ranks join some time later, because most waits are over before.
///
/// A rank that works may be far ahead of those that receive from it. It stops handling events when too much of what it
/// has sent is under way. It goes on taking in messages, so two such ranks cannot block each other. To the others it
/// is a rank that works: it has joined no reduction, and what it does later depends on nothing that it waits for here.
class Kernel::RankLoop {
 public:
  explicit RankLoop(Kernel& kernel);

  /// Returns when no rank has anything left to do. Collective.
  void run();

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t {
    working,   ///< the last burst handled events
    informed,  ///< blocked; something has come since others were told what this rank can promise
    waiting,   ///< blocked; others have been told
  };
  enum class WaitEnd : std::uint8_t { promise, other };

  void work(std::uint64_t handled);
  void wait_for_receivers();
  void adapt_patience();
  void block();
  bool take_messages();
  void tell_others(double waited);
  bool reduce();
  void watch_others();

  Kernel& kernel_;
  Channels& channels_;
  State state_ = State::working;
  WaitEnd wait_end_ = WaitEnd::other;  // what the last wait, or part of it, ended with
  bool has_asked_ = false;             // neighbours, since this rank last handled events
  double patience_;                    // seconds before a neighbour is asked: what it waits for may be on its way
  Clock::time_point blocked_since_ = Clock::now();
  Clock::time_point last_sign_ = blocked_since_;  // last message, or last progress of others, while blocked
  Clock::time_point last_beat_ = blocked_since_;  // last look at what all ranks have handled
  std::int64_t handled_by_all_ = 0;               // as it was seen last
  Clock::time_point freed_ = blocked_since_;      // by the last message or reduction
  double cpu_when_blocked_ = 0;                   // CPU time when the rank was blocked
  double cpu_when_freed_ = 0;                     // CPU time when it was freed
};

}  // namespace orrery::pdes
