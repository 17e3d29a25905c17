#pragma once

#include <functional>

#include "orrery/base/ids.hpp"
#include "orrery/npu/spec.hpp"

namespace orrery::npu {

/// The NPU whose state another one takes over. Both have done the same so far, each with its own peers and groups: the
/// first one has represented the other one in a folded run (docs/folding.md).
struct ResumedFrom {
  const NpuSpec& npu;
  /// Returns for whom a node of the resumed NPU has waited, if the same node of `npu` has waited for `last`. Not
  /// empty.
  std::function<NpuId(NodeId node, NpuId last)> awaited;
};

}  // namespace orrery::npu
