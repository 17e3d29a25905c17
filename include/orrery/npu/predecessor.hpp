#pragma once

#include <functional>

#include "orrery/base/ids.hpp"
#include "orrery/npu/spec.hpp"

namespace orrery::npu {

/// The NPU whose state another one takes over. Both have done the same so far, each with its own peers and groups: the
/// predecessor has represented the other one in a folded run (docs/folding.md).
struct Predecessor {
  const NpuSpec& npu;
  /// Returns for whom a node of the heir has waited, if the same node of the predecessor has waited for `last`. Not
  /// empty.
  std::function<NpuId(NodeId node, NpuId last)> awaited;
};

}  // namespace orrery::npu
