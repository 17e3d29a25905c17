#pragma once

#include "orrery/base/quantity.hpp"
#include "orrery/collective/mscclpp_plan.hpp"
#include "orrery/gpu/program.hpp"

namespace orrery::gpu {

using collective::mscclpp::parse_plan;
using collective::mscclpp::Plan;
using collective::mscclpp::read_plan;

/// Returns the smallest size of a message, `message` or more, that chunks divide into whole units of alignment.
Bytes next_size(const Plan& plan, Bytes message);

/// Returns the program of the GPUs for a message: the whole data of the collective, which is the input of an
/// all-reduce, reduce-scatter or all-to-all and the output of an all-gather. Pipelines are unrolled. Throws Error
/// (bad_input) for a size that is not next_size(plan, size) or out of the plan's range, for reused scratch that an
/// operation does not fit into, and for more than 2^22 operations. Cost O(operations).
Program make_program(const Plan& plan, Bytes message);

}  // namespace orrery::gpu
