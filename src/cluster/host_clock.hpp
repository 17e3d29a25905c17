#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "orrery/campaign/draws.hpp"
#include "orrery/cluster/options.hpp"

namespace orrery::cluster {

/// When hosts fail and come back (S9). What a host draws does not depend on other hosts or on jobs.
class HostClock {
 public:
  HostClock(const HostFailures& failures, std::uint32_t num_hosts, std::uint64_t seed);

  struct Change {
    std::uint32_t host = 0;
    bool fails = false;  ///< false: it comes back
  };
  /// Returns the time of the next change.
  Nanoseconds next() const { return std::get<0>(changes_.top()); }
  /// Takes the next change. At one time hosts fail before others come back, in the order of their numbers.
  Change take();

 private:
  using Entry = std::tuple<Nanoseconds, bool, std::uint32_t>;  // time, whether it comes back, host

  void plan(const campaign::Spread& spread, const campaign::Draws& draws, Nanoseconds from, bool returns,
            std::uint32_t host);

  const HostFailures& failures_;
  campaign::Draws lives_, repairs_;
  std::vector<std::uint32_t> count_;  // [hosts] failures so far
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> changes_;
};

}  // namespace orrery::cluster
