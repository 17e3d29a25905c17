#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/config/configuration.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/results/results.hpp"

namespace orrery::show {

/// Returns how far the step time may be off, and what it rests on, of metrics with a certainty.
std::string interval_text(const results::Metrics& metrics);

/// Prints step time, the metrics of the step, where the time goes, the critical path, hints, and what the run cost, on
/// standard output.
void print_summary(const results::Gathered& all, const results::RunDescription& run,
                   const config::Configuration& configuration);

/// Returns how many NPUs need more local memory than this.
std::uint64_t npus_beyond(const results::NpuRecords& npus, Bytes size);

/// Prints the line that ASTRA-sim prints for each NPU, on standard output.
void print_npus(const results::NpuRecords& npus);

}  // namespace orrery::show
