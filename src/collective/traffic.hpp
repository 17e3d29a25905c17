#pragma once

#include "plan.hpp"

namespace orrery::collective {

/// See Engine::traffic. O(members * dimensions) for each phase over one line of all members, else O(phases).
Traffic traffic_of(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind,
                   Bytes size);

}  // namespace orrery::collective
