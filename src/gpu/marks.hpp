#pragma once

#include "orrery/collective/data_contract.hpp"
#include "orrery/gpu/program.hpp"
#include "untimed.hpp"

namespace orrery::gpu {

/// Executes a program in some order with marks in place of data, and holds the outputs to the contract, whose chunks
/// are bytes. Throws Error (bad_input) with GPU, thread block and operation for bytes that are read and that nobody has
/// written, for sums of different data, for operands beyond a buffer, for blocks that wait for ever, and for a GPU that
/// ends without its result. Cost O(operations x log(pieces of a buffer)).
void follow_marks(const Program& program, const collective::DataContract& contract, Turns turns);

}  // namespace orrery::gpu
