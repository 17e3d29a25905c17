#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "algorithm.hpp"

namespace orrery::collective {

/// How many bytes go over a link of each side of a torus in one direction, if all sides work at once.
///
/// `full`: the bytes of the whole buffer, which a reduce-scatter divides among the positions and an all-gather
/// collects; of an all-to-all the bytes that a position has for all others. Parts of the buffer take the sides in all
/// orders, so that the sides finish together as far as their sizes allow: the bytes on them are the least maximum over
/// the sides of bytes / bandwidth. O(2^sides).
std::vector<double> loads_of_torus(std::span<const TorusSide> sides, Kind kind, double full, bool both_directions);

/// Makes what carries out a phase in a torus (PhaseShape::torus), which must outlive it.
///
/// Every position exchanges data with its neighbours along all sides in each step, as a schedule of many small pieces
/// does. A step for each hop between positions that are farthest apart moves data as far as they have to go, and each
/// step carries an equal part of what the links carry. An all-reduce has these steps twice.
std::shared_ptr<const PhaseAlgorithm> make_torus_phase(const PhaseShape& shape);

}  // namespace orrery::collective
