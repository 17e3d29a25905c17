#pragma once

#include <cstdint>
#include <vector>

#include "orrery/campaign/campaign.hpp"
#include "orrery/campaign/setup.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::campaign {

/// A setting that was tried, with the draws of all others.
struct Tried {
  Setup setup;
  Estimate ettr, goodput;
  Estimate difference;  ///< from the best setting, in the objective, by replication
  bool is_best = false;
  bool is_as_good = false;  ///< the difference is within its interval
};

/// What a search found, in the order of the settings.
struct Search {
  std::vector<Tried> tried;
  bool is_at_edge = false;  ///< the best is the first or the last setting

  const Tried& best() const;
};

/// Tries intervals of the first checkpoint tier by factors of 2^(1/4), a factor of 8 to both sides of the exact optimum
/// for crashes alone, in whole steps; the intervals of other tiers stay multiples of it. The objective is the effective
/// training time ratio. Collective.
Search search_intervals(const Setup& setup, Nanoseconds step, std::uint32_t replications,
                        parallel::Communicator& world);

/// Tries 0, 1, 2, 4, ... standbys, and the neighbours of the best. The objective is goodput: useful over allocated host
/// time, which the cost of a token follows. Collective.
Search search_standbys(const Setup& setup, std::uint32_t replications, parallel::Communicator& world);

}  // namespace orrery::campaign
