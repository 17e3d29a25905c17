#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/serving/step_shape.hpp"

namespace orrery::serving {

/// Returns the least size of a recorded graph that holds so many rows, or the number itself above the largest one.
inline std::uint64_t padded(const std::vector<std::uint64_t>& sizes, std::uint64_t rows) {
  const auto found = std::ranges::lower_bound(sizes, rows);
  return found == sizes.end() ? rows : *found;
}

/// Returns the rows to which data-parallel ranks pad together: those of the largest recorded graph of any of them; 0 if
/// none has a graph for its rows.
inline std::uint64_t common_rows(const std::vector<std::uint64_t>& sizes, std::span<const StepShape* const> shapes) {
  std::uint64_t rows = 0;
  for (const StepShape* const shape : shapes)
    rows = std::max(rows, padded(sizes, std::max<std::uint64_t>(1, shape->tokens())));
  return sizes.empty() || rows > sizes.back() ? 0 : rows;
}

}  // namespace orrery::serving
