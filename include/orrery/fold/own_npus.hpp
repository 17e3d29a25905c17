#pragma once

#include <algorithm>
#include <span>

#include "orrery/base/hosting.hpp"
#include "orrery/npu/spec.hpp"

namespace orrery::fold {

/// The NPUs that this rank has read, and which rank has read the others.
struct OwnNpus {
  std::span<const npu::NpuSpec> all;  ///< ascending
  Hosting owners;

  bool has(NpuId npu) const { return owners.is_here(npu); }
  /// Returns one that this rank has. O(log NPUs).
  const npu::NpuSpec& operator[](NpuId npu) const { return *std::ranges::lower_bound(all, npu, {}, &npu::NpuSpec::id); }
};

}  // namespace orrery::fold
