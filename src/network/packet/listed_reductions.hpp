#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/network/flow_run.hpp"
#include "orrery/network/reduction_trees.hpp"
#include "transports/packet_user.hpp"

namespace orrery::network {

/// The reductions of a list, their trees and their times. Every rank knows all reductions.
class ListedReductions {
 public:
  /// The scenario must outlive it. Throws Error (bad_input) as ReductionTrees does.
  explicit ListedReductions(const FlowScenario& scenario);

  const ReductionTrees& trees() const { return trees_; }
  /// Returns a host's part in a reduction that begins there.
  ReductionRequest begin(std::uint32_t reduction, std::size_t host);
  /// Notes that the operation with this number is over at a host of this rank.
  void end(std::uint64_t number, Time now);
  std::span<const ReductionTimes> times() const { return times_; }  ///< [reductions]

 private:
  const FlowScenario& scenario_;
  ReductionTrees trees_;
  std::vector<std::uint32_t> trees_of_;   // [reductions]
  std::vector<std::uint64_t> numbers_;    // [reductions]
  std::vector<std::uint32_t> by_number_;  // [numbers] reductions
  std::vector<ReductionTimes> times_;     // [reductions]
};

}  // namespace orrery::network
