#pragma once

#include <cstdint>

#include "orrery/collective/registry.hpp"
#include "routes.hpp"

namespace orrery::collective {

/// Returns the operations that one collective may use at a time in the switch of each group of this axis, whose
/// dimension offers in-switch operations: the members' share of them. So no switch ever carries out more than it
/// offers, whatever collectives its NPUs are in (docs/collectives.md, In-switch).
std::uint64_t switch_operations(const topology::Topology& topology, const Options& options, const Axis& axis);

/// Returns whether an algorithm carries out a kind in a group of `size`.
bool carries_out(const AlgorithmEntry& entry, Kind kind, std::uint32_t size);

/// Returns whether the phase's algorithm has steps for its kind and size: else validate_phase refuses it.
bool has_steps(const Phase& phase);

/// Throws Error (bad_input) if the phase's algorithm cannot carry it out; the message says which dimension, algorithm,
/// kind and size, and what is possible. `asked`: the collective that the phase is part of.
void validate_phase(const topology::Topology& topology, const Options& options, const GroupLayout& layout,
                    const Phase& phase, Kind asked);

}  // namespace orrery::collective
