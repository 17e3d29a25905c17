#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::memory {

/// What is known of the tensors of a structure before it runs (docs/memory.md, Capacity); empty if it lists none.
struct Lifetimes {
  std::vector<bool> is_initial;  ///< [num_tensors] in memory when an iteration begins, as no node makes it
  std::vector<bool> is_result;   ///< [num_tensors] stays until the iteration ends: the last node that lists it makes it
  Bytes initial;                 ///< of the former
};

/// O(nodes + dependencies + listings).
Lifetimes lifetimes_of(const trace::Graph& graph);

/// Tensors that are in memory together, for messages.
struct Residents {
  std::vector<std::uint32_t> largest;  ///< at most five, in descending size, of equal ones those listed first
  std::size_t count = 0;               ///< of all
};

/// `is_there`: [num_tensors]. O(tensors).
Residents residents_of(const trace::Tensors& tensors, const std::vector<bool>& is_there);

}  // namespace orrery::memory
