#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery {

/// A node with which an NPU leaves the range of time, so that it never completes, or a count of bytes its range.
struct Overrun {
  enum class Quantity : std::uint32_t { time, bytes_sent, peak_memory };

  Time since;  ///< the node's start
  NpuId npu;
  NodeId node;
  Quantity quantity = Quantity::time;

  friend auto operator<=>(const Overrun&, const Overrun&) = default;
};

/// Replaces `kept` by `met` if that is earlier.
inline void keep_earliest(std::optional<Overrun>& kept, const Overrun& met) {
  if (!kept || met < *kept) kept = met;
}

}  // namespace orrery
