#pragma once

#include "kineto_recording.hpp"

namespace orrery::trace {

/// Finds the call that launched each operation, by its correlation. Where the call of a kernel of communication was not
/// recorded, one is made up: in the first operator that could have launched the kernel and that launched no other one.
/// Sorts all by their starts. Cost O(n log n) in calls and operations, and O(operators) for each call that is made up.
void find_launches(Recording& recording);

}  // namespace orrery::trace
