#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "events.hpp"

namespace orrery::synthesis {

/// Draws the sizes of all nodes, one for each event: [nodes of all roles]. The sum over the compute nodes of a role,
/// and over the events of a family, is that of the sketches' means with their spreads, as far as there are `min_events`
/// of them, to a rounding of single sizes. O(nodes log nodes).
std::vector<Sizes> draw_sizes(const Model& model, const ScaledAxes& axes, const Events& events,
                              std::span<const ScaledProgram> programs, double factor, const Obfuscation& obfuscation);

/// Returns the factors of FLOPs, bytes and durations of a sketch: 1 without a spread. They depend on the seed and on
/// the sizes only.
std::array<double, 3> spread_of(const Sketch& sketch, const Obfuscation& obfuscation);

/// Returns the bytes with which a tensor is written, times a factor. Those that are equal stay equal.
std::uint64_t tensor_bytes(const HeldTensor& tensor, double factor, const Obfuscation& obfuscation);

/// Rounds to three significant digits.
double to_three_digits(double value);

}  // namespace orrery::synthesis
