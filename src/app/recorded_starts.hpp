#pragma once

#include <span>

#include "orrery/base/notices.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::app {

/// Lets the NPUs of recordings begin as far apart as their ranks did. If they began further apart than a recorded step
/// takes, their clocks were not the same one: then all begin together. Collective.
void keep_starts(std::span<trace::NpuTrace> traces, trace::Store& store, Notices& notices,
                 parallel::Communicator& world);

}  // namespace orrery::app
