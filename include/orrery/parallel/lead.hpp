#pragma once

#include <cstdint>
#include <functional>

#include "orrery/parallel/communicator.hpp"

namespace orrery::parallel {

/// What the body of `lead` calls often. The next call may come later than usual by so many seconds.
using GivesSigns = std::function<void(std::uint32_t seconds)>;

/// Runs `body` on rank 0 while the other ranks wait. When `body` calls its argument, all ranks give a heartbeat
/// (Heartbeat of base/job_context.hpp), the others once a second at most. Rethrows exceptions of `body` on rank 0.
/// Collective.
void lead(Communicator& world, const std::function<void(const GivesSigns&)>& body);

}  // namespace orrery::parallel
