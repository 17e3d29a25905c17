#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/countdowns.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::memory {

/// Which tensors of a graph stay outside the span from their first to their last node (docs/memory.md, Capacity). Empty
/// if the graph lists no tensors.
struct Lifetimes {
  std::vector<bool> is_initial;  ///< [num_tensors] in memory when an iteration begins, because no node makes it
  std::vector<bool> is_result;   ///< [num_tensors] stays until the iteration ends: the last node that lists it makes it
  Bytes initial;                 ///< total size of all initial tensors
  CountdownPlan users;           ///< [num_tensors] where NPUs count the nodes to come that list it
};

/// Finds the lifetimes of the tensors of a graph. O(nodes + dependencies + listings).
Lifetimes lifetimes_of(const trace::Graph& graph);

/// Tensors that are in memory together, for messages.
struct Residents {
  std::vector<std::uint32_t> largest;  ///< at most five, in descending size, of equal ones those listed first
  std::size_t count = 0;               ///< number of all of them

  void serialize(Archive& archive) { archive(largest, count); }
};

/// Finds the largest of the tensors for which `is_there`, [num_tensors], is set. O(tensors).
Residents residents_of(const trace::Tensors& tensors, const std::vector<bool>& is_there);

}  // namespace orrery::memory
