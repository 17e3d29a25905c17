#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "orrery/base/time.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/results/npu_records.hpp"

namespace orrery::results {

/// Where an NPU's time goes, in the order in which summaries show it: computing, then the causes of npu::Cause for
/// which it waits, then remote memory, then nothing.
constexpr std::size_t num_breakdown_parts = npu::num_causes + 4;
constexpr std::size_t first_cause_part = 2;  ///< parts compute and cpu come before npu::Cause
constexpr std::size_t memory_part = num_breakdown_parts - 2, idle_part = num_breakdown_parts - 1;

/// [parts] times of one NPU, or shares.
template <class T>
using BreakdownOf = std::array<T, num_breakdown_parts>;
using Breakdown = BreakdownOf<Time>;

/// Returns the name of a part: "compute", "tensor", "bubble", ...
std::string_view breakdown_name(std::size_t part);
/// Says in a few words what a part is.
std::string_view breakdown_text(std::size_t part);

/// Returns the breakdown of an NPU's time from 0 to `end`, the end of the simulation. The parts add up to `end` exactly
/// if the record is of a complete run.
Breakdown breakdown_of(const npu::NpuRecord& npu, Time end);

/// Returns the shares of all NPUs' time up to `end`, which must be positive. They add up to 1. O(NPUs).
BreakdownOf<double> mean_breakdown(const NpuRecords& npus, Time end);

}  // namespace orrery::results
