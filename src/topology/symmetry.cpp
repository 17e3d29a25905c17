#include "orrery/topology/symmetry.hpp"

#include <algorithm>
#include <unordered_map>

namespace orrery::topology {
namespace {

/// Returns whether positions are spaced evenly around the whole of a group.
bool are_evenly_spaced(std::uint32_t size, std::span<const std::uint32_t> positions) {
  const auto distance = [&](std::size_t i) { return (positions[i] + size - positions[0]) % size; };
  const std::uint64_t step = distance(1);
  for (std::size_t i = 0; i < positions.size(); ++i)
    if (distance(i) != i * step) return false;
  return step * positions.size() == size;
}

}  // namespace

void append_normal_form(const Dimension& dimension, std::span<const std::uint32_t> positions,
                        std::vector<std::uint32_t>& out) {
  switch (dimension.shape->symmetry) {
    case HopSymmetry::none:
      out.insert(out.end(), positions.begin(), positions.end());
      return;
    case HopSymmetry::translations: {
      const std::uint32_t lowest = std::ranges::min(positions);
      for (const std::uint32_t position : positions) out.push_back(position - lowest);
      return;
    }
    case HopSymmetry::rotations:
      for (const std::uint32_t position : positions)
        out.push_back((position + dimension.size - positions[0]) % dimension.size);
      return;
    case HopSymmetry::permutations: {
      std::unordered_map<std::uint32_t, std::uint32_t> label;
      for (const std::uint32_t position : positions)
        out.push_back(label.try_emplace(position, static_cast<std::uint32_t>(label.size())).first->second);
    }
  }
}

bool is_circulant(const Dimension& dimension, std::span<const std::uint32_t> positions) {
  if (positions.size() <= 2 || dimension.shape->symmetry == HopSymmetry::permutations) return true;
  return dimension.shape->symmetry == HopSymmetry::rotations && are_evenly_spaced(dimension.size, positions);
}

bool is_circulant(const Dimension& dimension) {
  const HopSymmetry symmetry = dimension.shape->symmetry;
  return dimension.size <= 2 || symmetry == HopSymmetry::rotations || symmetry == HopSymmetry::permutations;
}

}  // namespace orrery::topology
