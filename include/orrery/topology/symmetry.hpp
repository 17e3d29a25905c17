#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/topology/dimension.hpp"

namespace orrery::topology {

/// Appends to `out` other numbers for these positions of a dimension group, between which hops and the sharing of links
/// are the same. Lists of positions that behave alike mostly get equal numbers. O(positions).
void append_normal_form(const Dimension& dimension, std::span<const std::uint32_t> positions,
                        std::vector<std::uint32_t>& out);

/// Returns whether the hops between two of these positions depend on the distance of their places in the list, modulo
/// its length, alone. Distinct positions. May return false although it is so. O(positions).
bool is_circulant(const Dimension& dimension, std::span<const std::uint32_t> positions);

/// Returns whether the hops between two positions depend on their distance modulo the size of the dimension alone. May
/// return false although it is so.
bool is_circulant(const Dimension& dimension);

}  // namespace orrery::topology
