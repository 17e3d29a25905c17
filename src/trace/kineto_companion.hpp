#pragma once

#include "kineto_recording.hpp"

namespace orrery::trace {

/// Takes what a recording does not say of its communication from a PyTorch execution trace: from the file `name`, in
/// which {npu} stands for the rank, or, if that is empty, from t.et.json or t.et.json.gz beside t.json or t.json.gz, if
/// there is one. Operators of the two are the same if their record function ids are. Throws Error (bad_input) if the
/// file is no PyTorch execution trace.
void complete_from_execution_trace(const TraceFile& file, const std::filesystem::path& name, Recording& recording);

}  // namespace orrery::trace
