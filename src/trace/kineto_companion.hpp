#pragma once

#include "kineto_recording.hpp"

namespace orrery::trace {

/// Takes what a recording does not say of its communication from the PyTorch execution trace that lies beside it:
/// t.et.json or t.et.json.gz beside t.json or t.json.gz. Operators of the two are the same if their record function ids
/// are. Does nothing if there is no such file. Throws Error (bad_input) if it is no PyTorch execution trace.
void complete_from_execution_trace(const TraceFile& file, Recording& recording);

}  // namespace orrery::trace
