#pragma once

#include "orrery/base/faults.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::parallel {

/// Returns whether any rank has faults. Collective.
bool any_faults(const Faults& mine, Communicator& world);

/// Throws on all ranks if any has faults: on rank 0 those of all ranks (Faults::raise), elsewhere FailedElsewhere.
/// Collective.
void raise_faults(const Faults& mine, Communicator& world);

}  // namespace orrery::parallel
