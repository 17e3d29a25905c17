#pragma once

#include <span>

#include "orrery/trace/store.hpp"

namespace orrery::synthesis {

/// How far traces are from others of the same ranks (docs/synthesis.md, *How true they are*): of the ranks that are
/// compared, the worst.
struct Fidelity {
  double counts = 0;   ///< total variation of the counts of nodes by kind, collective, group and direction
  double sizes = 0;    ///< Wasserstein-1 distance of the logarithms of sizes, decades, the mean over kinds of sizes
  double depth = 0;    ///< relative error of the number of nodes on the longest path
  double degrees = 0;  ///< Kolmogorov-Smirnov distance of the numbers of dependencies, and of successors
};

/// What traces at the scale of the input should keep to.
inline constexpr Fidelity fidelity_aims{.counts = 0, .sizes = 0.05, .depth = 0.02, .degrees = 0.02};

/// The traces of NPUs 0, 1, ... and their store, which knows the members of groups.
struct TraceSet {
  const trace::Store& store;
  std::span<const trace::NpuTrace> traces;
};

/// Compares up to eight NPUs, evenly spread, of two sets of as many NPUs. O(nodes of these * log).
Fidelity fidelity_of(const TraceSet& made, const TraceSet& input);

}  // namespace orrery::synthesis
