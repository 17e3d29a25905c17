#pragma once

#include <cstdint>

#include "routes.hpp"

namespace orrery::collective {

/// Chunks that one collective may have at a time in the switch of each line of this axis, whose dimension offers
/// in-switch operations: the members' share of them, so that no switch ever has more than it offers, whatever
/// collectives its NPUs are in (docs/collectives.md, In the switch).
std::uint64_t in_switch_places(const topology::Topology& topology, const Options& options, const Axis& axis);

/// Throws Error (bad_input) if the phase's algorithm has no rule for it; says which dimension, algorithm, kind, size,
/// and what is possible. `asked`: the collective that it is part of.
void validate_phase(const topology::Topology& topology, const Options& options, const GroupLayout& layout,
                    const Phase& phase, Kind asked);

}  // namespace orrery::collective
