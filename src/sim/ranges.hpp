#pragma once

#include "orrery/executor/executor.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::sim {

/// Every node of this rank's NPUs fits the range of time and of bytes by itself. Throws Error (bad_input) that names
/// the first one that does not. O(nodes of distinct programs + peers), and a plan of each distinct collective, which
/// the engine keeps.
void check_ranges(const executor::Setting& setting, const trace::Store& store);

/// No NPU of any rank left the range of time or of bytes in the run. Throws Error (bad_input) that names the first
/// one's node. Collective.
void require_no_overrun(const executor::Executor& executor, const executor::Setting& setting, const trace::Store& store,
                        parallel::Communicator& world);

}  // namespace orrery::sim
