#pragma once

#include <span>

#include "orrery/base/ids.hpp"

namespace orrery {

/// Which rank hosts which logical process, as one rank sees it. The arrays outlive it.
struct Hosting {
  Rank here;
  std::span<const Rank> of_npu;     ///< [num_npus]
  std::span<const Rank> of_server;  ///< [num_servers] memory servers

  std::uint32_t num_npus() const { return static_cast<std::uint32_t>(of_npu.size()); }
  bool is_here(NpuId npu) const { return of_npu[npu.index()] == here; }
};

}  // namespace orrery
