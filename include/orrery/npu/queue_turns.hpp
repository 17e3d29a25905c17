#pragma once

#include "orrery/npu/run_context.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::npu {

/// Returns whether the turn of an NPU's queues goes on over all its communicators where members exchange messages over
/// links, so that no member can wait for the turns of the others. This is so if the dependencies of each NPU put its
/// collectives in one order, and if the members of each collective then agree on whose turn it is, or at least do not
/// wait for each other in a circle. Else the turn goes on in each communicator for itself. Collective. O(nodes +
/// dependencies + collectives * log communicators), and O(messages) of collectives whose members disagree.
bool turns_go_on_over_all(const RunContext& run, parallel::Communicator& world);

}  // namespace orrery::npu
