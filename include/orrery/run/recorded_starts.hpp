#pragma once

#include <span>
#include <vector>

#include "orrery/base/notices.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::run {

/// Lets the NPUs of recordings begin as far apart as their ranks did, by clocks that the ends of their collectives have
/// set (clock_offsets). If they began further apart than a recorded step takes even so, nothing ties their clocks: then
/// all begin together. `npus` says whose traces these are. Returns how much later each of them begins; nothing if all
/// begin together. Throws Error (bad_input) if they are of different steps. Collective.
std::vector<Time> keep_starts(std::span<const NpuId> npus, std::span<trace::NpuTrace> traces, trace::Store& store,
                              Notices& notices, parallel::Communicator& world);

}  // namespace orrery::run
