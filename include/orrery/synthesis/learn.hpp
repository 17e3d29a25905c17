#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "orrery/synthesis/model.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::synthesis {

struct LearnOptions {
  /// Sizes that fewer nodes have are pooled with those of the slots that are nearest.
  std::uint32_t min_support = 5;
};

/// Learns a model from the traces of NPUs 0, 1, ... of a store: roles, axes, loops, dependencies and sizes
/// (docs/synthesis.md). Cost O(nodes * longest body of a loop) for each distinct trace, and O(NPUs * groups).
Model learn(const trace::Store& store, std::span<const trace::NpuTrace> traces, const LearnOptions& options);

}  // namespace orrery::synthesis
