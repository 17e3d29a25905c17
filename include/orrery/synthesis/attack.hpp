#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "orrery/trace/graph.hpp"

namespace orrery::synthesis {

/// What an attacker measures of the sizes of a kind of node.
enum class Measure : std::uint8_t {
  count,   ///< how many there are
  mean,    ///< mean of the sizes
  spread,  ///< the largest over the least one
  share,   ///< count over the geometric mean of all counts
  ratio,   ///< mean over the geometric mean of all means
};

/// Whether it is of the first or the last NPU, the kind of the node, its collective (-1: none), and whether it is of
/// FLOPs, bytes or durations.
struct FeatureKey {
  bool is_last;
  trace::NodeKind kind;
  int collective;
  int field;
  Measure measure;

  friend auto operator<=>(const FeatureKey&, const FeatureKey&) = default;
};

/// Logarithms of the features that an attacker measures.
using Features = std::map<FeatureKey, double>;

/// Returns the features of traces of NPUs 0, 1, ...: those of the first and of the last one. O(nodes of these).
Features features_of(std::span<const trace::NpuTrace> traces);

/// What an attacker compares: everything, or only the ratios of sizes to each other, which neither another number of
/// layers nor a factor of all sizes changes.
enum class Attacker : std::uint8_t { all, ratios };

/// Returns which of the known features are nearest to others: by the mean distance of the features that differ among
/// the known ones, each in units of its deviation over them. Of equal ones the first. O(known * features).
std::size_t nearest(std::span<const Features> known, const Features& seen, Attacker attacker);

}  // namespace orrery::synthesis
