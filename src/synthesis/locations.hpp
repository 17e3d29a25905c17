#pragma once

#include <cstdint>
#include <vector>

#include "words.hpp"

namespace orrery::synthesis {

/// Where a node of a program is among its words.
struct Location {
  std::uint32_t token = 0, occurrence = 0, iteration = 0, offset = 0;
};

/// Returns the location of each position of a program. O(nodes).
std::vector<Location> locate(const Words& words);

/// Writes the dependencies and tensors of a program relative to its loops, into the tokens of `role`. O(dependencies
/// log nodes).
void learn_edges(const Program& program, const Words& words, const std::vector<Location>& locations, Role& role);

}  // namespace orrery::synthesis
