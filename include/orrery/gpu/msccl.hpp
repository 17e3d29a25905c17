#pragma once

#include "orrery/base/quantity.hpp"
#include "orrery/collective/msccl.hpp"
#include "orrery/gpu/program.hpp"

namespace orrery::gpu {

/// Returns the smallest size of a message, `message` or more, whose chunks are whole units of 16 bytes.
Bytes next_size(const collective::Msccl& algorithm, Bytes message);

/// Returns a message whose chunks take ten turns, so that slots are used again.
Bytes test_message(const collective::Msccl& algorithm);

/// Returns the program of the GPUs for a message when NCCL's protocol of the file carries the data (docs/gpu.md,
/// MSCCL): each connection has eight slots at its receiver. A step that sends waits for a free slot (a word that the
/// receiver sends), stores its data there and tells it; chunks larger than a slot take several turns of the whole
/// algorithm. With LL and LL128 data and
/// flags are packets, and only free slots are told by words. A step that another step waits for releases a semaphore.
/// Throws Error (bad_input) for a size that is not next_size. Cost O(steps x pieces).
Program make_program(const collective::Msccl& algorithm, Bytes message);

}  // namespace orrery::gpu
