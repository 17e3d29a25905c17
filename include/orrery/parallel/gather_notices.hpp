#pragma once

#include "orrery/base/notices.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::parallel {

/// Returns the notices of all ranks, merged, on rank 0, and nothing on other ranks. Collective.
Notices gather_notices(const Notices& mine, Communicator& world);

}  // namespace orrery::parallel
