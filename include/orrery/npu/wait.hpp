#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::npu {

/// Something that an unfinished NPU waits for.
struct Wait {
  NpuId npu;
  NodeId node;
  Time since;
  NpuId partner;  ///< partner of a send or a receive
  std::uint64_t tag = 0;
  Bytes size;
  bool in_collective = false;
  bool is_access = false;  ///< to memory; if it is of a group, `in_collective` is set too
  GroupId group;
  std::uint32_t ordinal = 0;
  std::uint32_t members = 0;
  std::vector<std::string> blocks = {};  ///< lines on what the thread blocks that carry it out wait for, one for each
};

}  // namespace orrery::npu
