#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

#include "host_list.hpp"
#include "orrery/campaign/draws.hpp"
#include "orrery/campaign/setup.hpp"
#include "slots.hpp"

namespace orrery::campaign {

/// The hosts of a replication: which are active, warm, in the pool, or in repair (R5, R7, R8).
class Hosts {
 public:
  Hosts(const Setup& setup, const Draws& draws);

  Slots& slots() { return slots_; }
  const Slots& slots() const { return slots_; }
  std::uint32_t num_standby() const { return static_cast<std::uint32_t>(standby_.size()); }
  /// Returns the number of hosts in the pool, active ones too.
  std::uint32_t num_healthy() const { return pool_.size(); }
  bool has_spare() const { return next_spare_ < numbers_.total(); }
  std::uint32_t num_retired() const { return num_retired_; }

  /// Returns the first warm host, which is one no longer; Slots::none if there is none.
  std::uint32_t take_standby();
  /// Returns at most n + standby hosts of the pool in the order in which they are taken. `selections`: how often hosts
  /// were selected before.
  std::vector<std::uint32_t> candidates(std::uint64_t selections) const;
  void set_standby(std::span<const std::uint32_t> hosts) { standby_.assign(hosts.begin(), hosts.end()); }
  /// Puts the next spare into the pool.
  void take_spare() { pool_.append(next_spare_++); }

  /// Sends a host to repair.
  void blame(std::uint32_t host, Nanoseconds now);
  /// Makes a host the last of the pool.
  void put_last(std::uint32_t host);
  /// Makes a host a standby if there are fewer than there may be.
  void make_standby(std::uint32_t host);
  /// Returns when the next repair ends; `longest` if none is under way.
  Nanoseconds next_return() const { return repairs_.empty() ? longest : std::get<0>(repairs_.top()); }
  /// Takes back the hosts whose repairs ended until now, in the order of the ends.
  void take_back(Nanoseconds now);

 private:
  using Repair = std::tuple<Nanoseconds, std::uint64_t, std::uint32_t, bool>;  // end, number, host, whether it is cured

  bool is_to_retire(std::uint32_t host, Nanoseconds at) const;
  void order_by_draw(std::vector<std::uint32_t>& hosts, std::uint64_t selections) const;

  const HostNumbers& numbers_;
  const RepairRules& rules_;
  const Draws& draws_;
  Slots slots_;
  std::vector<std::vector<Nanoseconds>> blames_;  // [hosts] when each was sent to repair
  HostList pool_;                                 // healthy hosts, active ones too, in the order of their return
  std::deque<std::uint32_t> standby_;
  std::priority_queue<Repair, std::vector<Repair>, std::greater<>> repairs_;
  std::uint64_t num_repairs_ = 0;
  std::uint32_t next_spare_, num_retired_ = 0;
};

}  // namespace orrery::campaign
