#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_set>

namespace orrery::synthesis {

/// What is written, relative to what was learned.
struct Scale {
  std::map<std::uint32_t, double> axes = {};   ///< factors of axes
  std::optional<std::uint32_t> npus;           ///< the axis of data parallelism is scaled to get so many
  std::optional<std::uint32_t> layers;         ///< layers of a replica
  std::optional<std::uint32_t> micro_batches;  ///< micro-batches of a step
  double sizes = 1;                            ///< factor of FLOPs, bytes and durations
};

struct Obfuscation {
  double delta = 0.05;  ///< deviation of the logarithm of sizes; 0: sizes as learned
  std::uint64_t seed = 1;
  /// Deviation of the logarithm of one factor for all FLOPs, bytes or durations of a size. With it ratios of sizes, and
  /// sums, are others than those that were learned.
  double spread = 0;
  /// What no size may equal as far as another one is near, unless sizes stay as learned; null: nothing.
  const std::unordered_set<std::uint64_t>* avoid = nullptr;

  bool changes_sizes() const { return delta > 0 || spread > 0; }
};

}  // namespace orrery::synthesis
