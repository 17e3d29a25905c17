#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::partition {

/// How NPUs are dealt to ranks (partitions/README.md).
enum class Strategy : std::uint8_t {
  block,        ///< contiguous blocks
  round_robin,  ///< NPU i on rank i mod R
  dimension,    ///< whole lines stay together
  metis,        ///< a graph of who talks to whom is cut
  file,         ///< a rank map
};

/// The choice of a partition.
struct PartitionOptions {
  Strategy strategy = Strategy::block;
  std::uint32_t dimension = 0;      ///< with Strategy::dimension: NPUs that differ in dimensions up to this one only
  std::filesystem::path file = {};  ///< with Strategy::file

  /// Throws Error (bad_input) at `named_by`: a dimension that the topology does not have.
  void validate(const topology::Topology& topology, const Place& named_by) const;
};

/// "block", "round-robin", "dimension:1", "metis", or the file.
std::string name(const PartitionOptions& options);

/// Which rank hosts which NPU. Results do not depend on it.
class Partition {
 public:
  /// What the options name. Strategy::metis needs more than a topology: a broken invariant here. Throws as the others
  /// do.
  static Partition make(const PartitionOptions& options, const topology::Topology& topology, int num_ranks);
  /// Contiguous blocks whose sizes differ by one at most.
  static Partition blocks(std::uint32_t num_npus, int num_ranks);
  /// NPU i on rank i mod `num_ranks`.
  static Partition round_robin(std::uint32_t num_npus, int num_ranks);
  /// NPUs that differ in dimensions 0 .. `last` only are on one rank; such sets, in ascending order, are dealt to ranks
  /// in contiguous blocks whose numbers of sets differ by one at most.
  static Partition lines(const topology::Topology& topology, std::uint32_t last, int num_ranks);
  /// ranks[i] is the rank of NPU i, 0 .. num_ranks - 1.
  static Partition from_ranks(std::vector<Rank> ranks, int num_ranks);
  /// partitions/README.md: line i holds the rank of NPU i; blank lines and lines that start with # or % are skipped.
  /// Throws Error (bad_input) with file and line: not a number, a rank out of 0..num_ranks-1, too few or too many
  /// lines.
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

}  // namespace orrery::partition
