#pragma once

#include <cstdint>

#include "orrery/base/faults.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/config/configuration.hpp"

namespace orrery::run {

/// Whose NPUs have the traces of a workload.
enum class TraceOwner : std::uint8_t { system, job };

/// Compares the numbers in the names of the trace files that are there with the NPUs of their owner, where one pattern
/// names all of them. Adds a fault if there are traces of the first NPUs only, or none; and if there are traces beyond
/// the last NPU, a fault or a warning as Workload::surplus says. Cost O(files in the folder of the traces).
void compare_trace_files(const config::Workload& workload, TraceOwner owner, std::uint32_t num_npus, Faults& faults,
                         Notices& notices);

}  // namespace orrery::run
