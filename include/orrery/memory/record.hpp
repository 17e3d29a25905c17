#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::memory {

/// A stage of a hierarchical pool of memory.
struct MemoryStageRecord {
  std::uint32_t stage = 0;    ///< 0 is at the memory
  std::uint32_t servers = 0;  ///< side by side
  Bytes bytes;                ///< bytes that have passed the stage
  Time busy;                  ///< summed over its servers

  std::string_view name() const {
    constexpr std::string_view names[] = {"groups", "links", "fabrics"};
    return names[stage];
  }
};

/// The bytes of the tensors in the local memory of an NPU from a time on.
struct UsageRecord {
  NpuId npu;
  Time since;
  Bytes usage;
};

}  // namespace orrery::memory
