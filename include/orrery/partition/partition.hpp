#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"

namespace orrery::partition {

/// Which rank hosts which NPU. Results do not depend on it.
class Partition {
 public:
  /// `ranks[i]` is the rank of NPU i, 0 .. num_ranks - 1; a rank may host no NPU. Fails (an internal Error) for a rank
  /// that does not exist. Cost O(NPUs).
  Partition(std::vector<Rank> ranks, int num_ranks);

  int num_ranks() const { return static_cast<int>(hosted_.size()); }
  /// Returns the rank of each NPU: [num_npus].
  std::span<const Rank> ranks() const { return ranks_; }
  Rank rank_of(NpuId npu) const { return ranks_[npu.index()]; }
  /// Returns the NPUs of a rank in ascending order.
  std::span<const NpuId> npus_of(Rank rank) const { return hosted_[rank.index()]; }

 private:
  std::vector<Rank> ranks_;
  std::vector<std::vector<NpuId>> hosted_;
};

}  // namespace orrery::partition
