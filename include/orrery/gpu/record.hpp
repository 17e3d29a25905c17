#pragma once

#include <array>
#include <cstdint>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/gpu/device.hpp"

namespace orrery::gpu {

/// A kernel that has carried out the part of one GPU in a collective.
struct KernelRecord {
  NpuId npu;
  GroupId group;
  std::uint32_t ordinal = 0;  ///< ordinal of the collective in its group
  std::uint32_t blocks = 0;
  Time start, end;
  std::array<Time, num_stalls> stalls = {};  ///< stall times of its blocks, summed
};

/// What one GPU has sent to another one, or to a switch.
struct RequestRecord {
  static constexpr std::int64_t to_switch = -1;

  NpuId npu;
  std::int64_t peer = to_switch;  ///< NPU
  RequestCounts counts;
};

}  // namespace orrery::gpu
