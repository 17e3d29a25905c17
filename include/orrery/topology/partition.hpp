#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"

namespace orrery::topology {

/// Which rank hosts which NPU. Results do not depend on it.
class Partition {
 public:
  /// Contiguous blocks whose sizes differ by one at most.
  static Partition blocks(std::uint32_t num_npus, int num_ranks);
  /// partitions/README.md: line i holds the rank of NPU i; blank lines and lines that start with # or % are skipped.
  /// Throws Error (bad_input) with file and line: not a number, a rank out of 0..num_ranks-1, too few or too many lines.
  static Partition from_file(const std::filesystem::path& path, std::uint32_t num_npus, int num_ranks);

  int num_ranks() const { return static_cast<int>(hosted_.size()); }
  Rank rank_of(NpuId npu) const { return ranks_[npu.index()]; }
  /// Ascending.
  std::span<const NpuId> npus_of(Rank rank) const { return hosted_[rank.index()]; }

 private:
  Partition(std::vector<Rank> ranks, int num_ranks);

  std::vector<Rank> ranks_;
  std::vector<std::vector<NpuId>> hosted_;
};

}  // namespace orrery::topology
