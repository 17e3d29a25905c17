#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"

namespace orrery::npu {

/// The compute units of an NPU that its collectives take while they transfer (compute::Options::collectives_share).
/// Each collective takes that share of them from when its last member has come until it ends. What compute nodes lose
/// is owed to them: the node under way at the collective's end, or the next one, takes so much longer.
///
/// The NPU decides by itself, from ends that it has handled, so results do not depend on ranks.
class SharedUnits {
 public:
  void begin_transfer() { ++num_transfers_; }
  /// Ends a transfer that began at `since` and took this share of the units. Compute nodes that are still under way
  /// have run beside it for `running`.
  void end_transfer(Time since, Time running, double share);
  /// Counts a compute node that ends.
  void count_compute(Time from, Time to);
  /// Returns what is owed to a compute node that would end now, and owes it no more.
  Time take_owed() { return std::exchange(owed_, Time::zero()); }
  void serialize(Archive& archive) { archive(num_transfers_, done_, owed_); }

 private:
  struct Work {
    Time from, to;
  };
  std::uint32_t num_transfers_ = 0;
  std::vector<Work> done_;  ///< compute nodes that have ended since the first of these transfers began
  Time owed_ = Time::zero();
};

}  // namespace orrery::npu
