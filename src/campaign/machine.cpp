#include "machine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::campaign {
namespace {

/// Returns how long work takes at a speed below 1, rounded up.
Nanoseconds time_for(Nanoseconds work, double speed) {
  const double exact = static_cast<double>(work) / speed;
  if (!(exact < static_cast<double>(longest))) return longest;
  return std::max(work, static_cast<Nanoseconds>(std::ceil(exact)));
}

}  // namespace

Machine::Machine(const Setup& setup, std::uint64_t replication, const Watch& watch)
    : setup_(setup),
      draws_(setup.seed, replication),
      hosts_(setup, draws_),
      clock_(setup, draws_, hosts_.slots()),
      checkpoints_(setup),
      ledger_(setup, hosts_, watch) {}

Row Machine::run() {
  if (begin())
    while (!is_done() && handle(run_on())) {
    }
  hosts_.take_back(ledger_.now());
  Row& row = ledger_.row();
  row.retired = hosts_.num_retired();
  row.unseen = clock_.unseen();
  return ledger_.finish();
}

bool Machine::begin() {
  return acquire(-1) && phase(State::select, setup_.restart.select, -1) &&
         phase(State::restart, setup_.restart.begin, -1);
}

Strike Machine::advance(Nanoseconds most, bool is_running) {
  Strike strike = clock_.advance(ledger_.now(), most, is_running);
  if (strike.process >= 0) {
    ++ledger_.row().failures;
    ++ledger_.row().failures_of[static_cast<std::size_t>(strike.process)];
  }
  return strike;
}

/// Lets the job run until something changes by itself, or a failure.
Strike Machine::run_on() {
  if (stall_left_ > 0) return stall();
  Strike strike = speed() < 1 ? work_slowly() : work_fast();
  if (strike.process < 0 && progress_ >= setup_.work && setup_.final_checkpoint && checkpoints_.is_due(progress_))
    return take_final_checkpoint();
  return strike;
}

Nanoseconds Machine::until_change() const {
  const Nanoseconds at = std::min(straggler_.found, corruption_.found);
  return std::clamp<Nanoseconds>(at - ledger_.now(), 0, ledger_.left());
}

Strike Machine::stall() {
  Strike strike = advance(std::min(until_change(), stall_left_), true);
  ledger_.run(0, strike.elapsed, 0, -1);
  stall_left_ -= strike.elapsed;
  if (stall_left_ == 0) {
    hosts_.take_back(ledger_.now());
    may_grow_ = strike.process < 0 && replica_speed_ < 1;
  }
  return strike;
}

Strike Machine::work_slowly() {
  const Nanoseconds target = std::min(setup_.work, checkpoints_.next_due(progress_));
  const Nanoseconds needed = time_for(target - progress_, speed());
  Strike strike = advance(std::min(until_change(), needed), true);
  const auto part = static_cast<Nanoseconds>(std::floor(static_cast<double>(strike.elapsed) * speed()));
  const Nanoseconds worked =
      strike.elapsed == needed ? target - progress_ : std::clamp<Nanoseconds>(part, 0, target - progress_);
  progress_ += worked;
  ledger_.run(worked, 0, strike.elapsed - worked, straggler_.process >= 0 ? straggler_.process : shrunk_by_);
  if (strike.process < 0 && progress_ < setup_.work && checkpoints_.is_due(progress_))
    stall_left_ = checkpoints_.take_due(progress_, ledger_.now());
  return strike;
}

Strike Machine::work_fast() {
  const Nanoseconds limit = until_change();
  const Nanoseconds needed = checkpoints_.time_to(setup_.work, progress_, limit);
  Strike strike = advance(std::min(limit, needed), true);
  const auto reached = checkpoints_.run(setup_.work, progress_, ledger_.now(), strike.elapsed);
  ledger_.run(reached.progress - progress_, reached.stalled, 0, -1);
  progress_ = reached.progress;
  stall_left_ = reached.stall_left;
  return strike;
}

Strike Machine::take_final_checkpoint() {
  const Nanoseconds length = checkpoints_.take_due(progress_, ledger_.now());
  Strike strike = advance(std::min(length, ledger_.left()), true);
  ledger_.run(0, strike.elapsed, 0, -1);
  return strike;
}

bool Machine::handle(const Strike& strike) {
  const std::int32_t f = strike.process;
  if (f < 0) {
    if (ledger_.is_over()) return false;
    const bool may_grow = std::exchange(may_grow_, false);
    if (may_grow && hosts_.num_healthy() >= setup_.hosts.active) return grow();
    if (ledger_.now() >= corruption_.found) return recover_from_corruption();
    return ledger_.now() < straggler_.found || replace_straggler();
  }
  switch (process(f).symptom) {
    case Symptom::silent:
      note_silent(strike);
      return true;
    case Symptom::slow:
      note_straggler(strike);
      return true;
    case Symptom::pause:
      return pause(f);
    default:
      break;
  }
  stall_left_ = 0;
  straggler_ = {};
  if (!recover(f, strike.hosts)) return false;
  if (progress_ <= corruption_.progress) corruption_ = {};
  return true;
}

void Machine::note_silent(const Strike& strike) {
  clock_.renew(strike.process, strike.hosts);
  if (corruption_.process >= 0) return;
  corruption_ = {strike.process, progress_, ledger_.now() + detection(strike.process), strike.hosts};
}

void Machine::note_straggler(const Strike& strike) {
  clock_.renew(strike.process, strike.hosts);
  if (straggler_.process >= 0) return;
  straggler_ = {strike.process, process(strike.process).speed, ledger_.now() + detection(strike.process), strike.hosts};
}

bool Machine::recover(std::int32_t f, const std::vector<std::uint32_t>& hosts) {
  const Nanoseconds read = roll_back(f, longest);
  ++ledger_.row().restarts;
  const Nanoseconds restart = restart_time();
  return struck(f, hosts) && phase(State::restart, restart + read, f);
}

bool Machine::recover_from_corruption() {
  const Corruption found = std::exchange(corruption_, {});
  const std::int32_t f = found.process;
  stall_left_ = 0;
  straggler_ = {};
  const Nanoseconds read = roll_back(f, found.progress);
  ++ledger_.row().restarts;
  const Nanoseconds restart = restart_time();
  if (process(f).repairs) {
    std::vector<std::uint32_t> active;
    for (const std::uint32_t host : found.hosts)
      if (hosts_.slots().has(host)) active.push_back(host);
    for (const std::uint32_t host : active) hosts_.blame(host, ledger_.now());
    if (!replace(active, f)) return false;
  }
  return phase(State::restart, restart + read, f);
}

bool Machine::replace_straggler() {
  const Straggler found = std::exchange(straggler_, {});
  const std::int32_t f = found.process;
  stall_left_ = 0;
  if (checkpoints_.any()) {
    ledger_.pass(State::stall, checkpoints_.first_stall(), -1);
    checkpoints_.take_planned(progress_, ledger_.now());
  }
  if (process(f).repairs) {
    for (const std::uint32_t host : found.hosts) hosts_.blame(host, ledger_.now());
    if (!replace(found.hosts, f)) return false;
  }
  return phase(State::restart, restart_time(), f);
}

bool Machine::pause(std::int32_t f) {
  const Process& p = process(f);
  if (p.has_notice && checkpoints_.any()) {
    ledger_.pass(State::stall, checkpoints_.first_stall(), -1);
    checkpoints_.take_planned(progress_, ledger_.now());
  }
  stall_left_ = 0;
  straggler_ = {};
  if (!p.has_notice) {
    roll_back(f, longest);
    if (progress_ <= corruption_.progress) corruption_ = {};
  }
  const double u = draws_.unit(stream::pause, clock_.counts()[static_cast<std::size_t>(f)]);
  ledger_.pass(State::pause, nanoseconds(p.length.quantile(u)), f);
  return phase(State::restart, restart_time(), f);
}

bool Machine::grow() {
  const std::int32_t f = shrunk_by_;
  return acquire(f) && phase(State::select, setup_.restart.select, f) && phase(State::restart, restart_time(), f);
}

Nanoseconds Machine::detection(std::int32_t f) const {
  const double u =
      draws_.unit(stream::detection + static_cast<std::uint64_t>(f), clock_.counts()[static_cast<std::size_t>(f)]);
  return nanoseconds(process(f).detect.quantile(u));
}

Nanoseconds Machine::restart_time() const {
  return nanoseconds(setup_.restart.start.quantile(draws_.unit(stream::restart, ledger_.row().restarts)));
}

Nanoseconds Machine::roll_back(std::int32_t f, Nanoseconds before) {
  if (!checkpoints_.any()) return 0;
  const auto restored = checkpoints_.roll_back(ledger_.now(), process(f).per == Per::group, before);
  ledger_.lose(progress_ - restored.progress, f);
  progress_ = restored.progress;
  return restored.read;
}

}  // namespace orrery::campaign
