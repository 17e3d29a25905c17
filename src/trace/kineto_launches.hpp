#pragma once

#include "kineto_recording.hpp"

namespace orrery::trace {

/// Finds the call that launched each operation, by its correlation. The call that launched a kernel of communication is
/// made up where it was not recorded, from an operator that no other kernel belongs to: the first one that could have
/// launched it. Sorts all by their starts. Cost O(n log n) in calls and operations.
void find_launches(Recording& recording);

}  // namespace orrery::trace
