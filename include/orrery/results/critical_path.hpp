#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/npu/record.hpp"

namespace orrery::results {

/// A stretch of the critical path: what an NPU did that the end of the run waited for.
struct PathSegment {
  Time start, finish;
  NpuId npu;
  std::uint64_t node = 0;  ///< the trace's own id; 0 where nothing ran
  std::size_t part = 0;    ///< part of results::Breakdown
  std::uint32_t name = 0;  ///< as TimelineRecord::name
};

/// The critical path is looked for in timelines of at most this many rows, as rank 0 must hold them all.
constexpr std::uint64_t most_path_rows = std::uint64_t{1} << 22U;

/// Returns the critical path of a timeline, in the order of time and without gaps. It ends with the node that finishes
/// last. Before a node that waited for another NPU comes what that NPU did before it was ready; before any other node,
/// the longest of those that finished when it began, on the same NPU. `timeline` is grouped by NPU ascending. O(rows of
/// the NPUs on the path * log of them).
std::vector<PathSegment> critical_path(std::span<const npu::TimelineRecord> timeline);

}  // namespace orrery::results
