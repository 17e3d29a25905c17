#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace orrery::serving {

/// Returns the least size of a recorded graph that holds so many rows, or the number itself above the largest one.
inline std::uint64_t padded(const std::vector<std::uint64_t>& sizes, std::uint64_t rows) {
  const auto found = std::ranges::lower_bound(sizes, rows);
  return found == sizes.end() ? rows : *found;
}

}  // namespace orrery::serving
