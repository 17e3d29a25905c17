#pragma once

#include <span>

#include "hdf5_file.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/npu/record.hpp"

namespace orrery::results {

/// The group /memory of docs/results.md.
void write_memory(File& file, std::span<const memory::MemoryStageRecord> stages, Time simulated_time);

}  // namespace orrery::results
