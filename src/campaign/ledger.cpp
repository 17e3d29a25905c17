#include <algorithm>
#include <numeric>

#include "machine.hpp"
#include "orrery/base/error.hpp"

namespace orrery::campaign {

Ledger::Ledger(const Setup& setup, const Hosts& hosts, const Watch& watch)
    : hosts_(hosts), watch_(watch), duration_(setup.duration) {
  row_.by_process.assign(setup.processes.size() * num_states, 0);
  row_.failures_of.assign(setup.processes.size(), 0);
}

void Ledger::book(State state, Nanoseconds time, std::int32_t process) {
  row_.times[static_cast<std::size_t>(state)] += time;
  if (process >= 0)
    row_.by_process[static_cast<std::size_t>(process) * num_states + static_cast<std::size_t>(state)] += time;
}

void Ledger::watch(State state, Nanoseconds time, std::int32_t process) {
  const std::uint32_t hosts = hosts_.slots().size();
  if (period_.end > period_.begin && period_.state == state && period_.process == process && period_.hosts == hosts) {
    period_.end += time;
    return;
  }
  if (period_.end > period_.begin) watch_(period_);
  period_ = {row_.time, row_.time + time, state, process, hosts};
}

void Ledger::pass(State state, Nanoseconds time, std::int32_t process) {
  time = std::min(time, left());
  if (time <= 0) return;
  book(state, time, process);
  if (watch_) watch(state, time, process);
  row_.allocated += seconds(time) * (hosts_.slots().size() + hosts_.num_standby());
  row_.time += time;
}

void Ledger::run(Nanoseconds worked, Nanoseconds stalled, Nanoseconds slow, std::int32_t slow_by) {
  book(State::useful, worked, -1);
  book(State::stall, stalled, -1);
  book(State::slow, slow, slow_by);
  const Nanoseconds time = worked + stalled + slow;
  if (time == 0) return;
  if (watch_) watch(slow > 0 ? State::slow : worked > 0 ? State::useful : State::stall, time, slow > 0 ? slow_by : -1);
  row_.allocated += seconds(time) * (hosts_.slots().size() + hosts_.num_standby());
  row_.time += time;
}

void Ledger::lose(Nanoseconds work, std::int32_t process) {
  book(State::useful, -work, -1);
  book(State::lost, work, process);
}

Row Ledger::finish() {
  if (watch_ && period_.end > period_.begin) watch_(period_);
  ensure(std::accumulate(row_.times.begin(), row_.times.end(), Nanoseconds{0}) == row_.time,
         "the times of a campaign add up");
  return std::move(row_);
}

}  // namespace orrery::campaign
