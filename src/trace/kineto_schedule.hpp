#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kineto_recording.hpp"

namespace orrery::trace {

/// What of a recording becomes a trace.
struct RecordedSpan {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::string name;                   ///< "ProfilerStep#3", or "the recording"
  std::optional<std::uint32_t> step;  ///< its number, if it is a step
};

/// A node that a recording becomes: work of the host, or a GPU operation.
struct ScheduledNode {
  std::int64_t duration = 0;                   ///< ns
  std::uint32_t operation = ~0U;               ///< index into Schedule::operations; host: none
  std::vector<std::uint32_t> after;            ///< indices of nodes
  std::vector<std::uint32_t> after_operation;  ///< indices into Schedule::operations
  std::uint64_t position = 0;

  bool is_of_host() const { return operation == ~0U; }
};

/// The nodes of a span and the order that launches, streams, events and synchronisations give them. Node 0 is host work
/// without a duration before all others; the last node of the host ends when the span does.
struct Schedule {
  /// Start of the nodes: that of the span or, if the host ran ahead of the GPU, the end of the operations that were
  /// launched before the span. What the host did between the two was done while the GPU worked these off.
  std::int64_t start = 0;
  std::int64_t end = 0;  ///< end of the span, or of its last operation if that is later
  std::vector<GpuOperation> operations;
  std::vector<ScheduledNode> nodes;
  std::uint64_t without_launch = 0;  ///< operations whose launch was not recorded
};

/// Makes the nodes of a span. Cost O(calls + operations log operations).
Schedule make_schedule(const Recording& recording, const RecordedSpan& span);

}  // namespace orrery::trace
