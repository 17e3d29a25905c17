#include <algorithm>

#include "machine.hpp"

namespace orrery::campaign {

void Machine::enter(std::uint32_t slot, std::uint32_t host) {
  hosts_.slots().enter(slot, host);
  clock_.entered(host);
}

void Machine::leave(std::uint32_t host, std::int32_t failed) {
  hosts_.slots().leave(host);
  clock_.left(host, failed);
}

/// Chooses the hosts of the job anew; fewer replicas if `shrink`.
bool Machine::select(bool shrink, std::int32_t f) {
  const Elastic& elastic = setup_.elastic;
  std::uint32_t needed = setup_.hosts.active;
  double speed = 1;
  if (hosts_.num_healthy() < needed) {
    if (!shrink) return false;
    const std::uint32_t replicas = hosts_.num_healthy() / elastic.hosts_per_replica;
    if (replicas < elastic.least) return false;
    needed = replicas * elastic.hosts_per_replica;
    const auto found = std::ranges::find(elastic.speeds, replicas, &std::pair<std::uint32_t, double>::first);
    speed = found == elastic.speeds.end() ? 1 : found->second;
  }
  auto& row = ledger_.row();
  const auto hosts = hosts_.candidates(row.selections);
  replica_speed_ = speed;
  shrunk_by_ = needed < setup_.hosts.active ? f : -1;
  hosts_.slots().clear([&](std::uint32_t host) { clock_.left(host, -1); });
  for (std::uint32_t i = 0; i < needed; ++i) enter(i, hosts[i]);
  hosts_.set_standby(std::span(hosts).subspan(needed));
  ++row.selections;
  return true;
}

bool Machine::acquire(std::int32_t f) {
  hosts_.take_back(ledger_.now());
  if (select(false, f)) return true;
  const auto& numbers = setup_.hosts;
  const std::uint32_t enough = numbers.active + (numbers.wait_for_standbys ? numbers.standby : 0);
  while (hosts_.num_healthy() < enough && !ledger_.is_over()) {
    if (hosts_.has_spare()) {
      ledger_.pass(State::wait, setup_.restart.spare_preemption, f);
      hosts_.take_back(ledger_.now());
      hosts_.take_spare();
      ++ledger_.row().spares;
      continue;
    }
    if (setup_.elastic.hosts_per_replica > 0 && select(true, f)) return true;
    if (hosts_.next_return() == longest) {
      ledger_.row().depleted = true;
      return false;
    }
    ledger_.pass(State::wait, std::max<Nanoseconds>(0, hosts_.next_return() - ledger_.now()), f);
    hosts_.take_back(ledger_.now());
  }
  return !ledger_.is_over() && select(false, f);
}

bool Machine::replace(const std::vector<std::uint32_t>& hosts, std::int32_t f) {
  hosts_.take_back(ledger_.now());
  if (hosts.empty()) return true;
  bool is_short = false;
  for (const std::uint32_t host : hosts) {
    if (!hosts_.slots().has(host)) continue;
    const std::uint32_t slot = hosts_.slots().slot_of(host);
    leave(host, f);
    const std::uint32_t standby = is_short ? Slots::none : hosts_.take_standby();
    if (standby != Slots::none)
      enter(slot, standby);
    else
      is_short = true;
  }
  if (!is_short) return phase(State::select, setup_.restart.swap, f);
  return acquire(f) && phase(State::select, setup_.restart.select, f);
}

/// A phase that failures interrupt and that then begins anew (R4).
bool Machine::phase(State state, Nanoseconds length, std::int32_t f) {
  while (length > 0) {
    const Strike strike = advance(std::min(length, ledger_.left()), false);
    ledger_.pass(state, strike.elapsed, f);
    if (ledger_.is_over()) return false;
    if (strike.process < 0) return true;
    if (!struck(strike.process, strike.hosts)) return false;
  }
  return !ledger_.is_over();
}

/// Detection, diagnosis, repair and replacement (R4, R7).
bool Machine::struck(std::int32_t f, std::vector<std::uint32_t> hosts) {
  ledger_.pass(State::detect, detection(f), f);
  if (ledger_.is_over()) return false;
  const RepairRules& rules = setup_.repair;
  const std::uint64_t number = ledger_.row().failures;
  if (!hosts.empty() && draws_.unit(stream::diagnosis, number, 0) >= rules.found) {
    for (const std::uint32_t host : hosts) {  // nobody knows the culprit, which comes back at once
      hosts_.put_last(host);
      hosts_.make_standby(host);
    }
    return replace(hosts, f);
  }
  if (!hosts.empty() && draws_.unit(stream::diagnosis, number, 1) < rules.wrong) {
    std::vector<std::uint32_t> others;
    for (const std::uint32_t host : hosts_.slots().hosts())
      if (std::ranges::find(hosts, host) == hosts.end()) others.push_back(host);
    if (!others.empty()) {
      for (const std::uint32_t host : hosts) hosts_.put_last(host);
      const double u = draws_.unit(stream::diagnosis, number, 2);
      hosts = {others[static_cast<std::size_t>(u * static_cast<double>(others.size()))]};
    }
  }
  if (process(f).repairs) {
    for (const std::uint32_t host : hosts) hosts_.blame(host, ledger_.now());
    return replace(hosts, f);
  }
  clock_.renew(f, hosts);
  return true;
}

}  // namespace orrery::campaign
