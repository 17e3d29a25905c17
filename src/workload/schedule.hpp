#pragma once

#include <cstdint>
#include <vector>

#include "orrery/workload/parallel.hpp"

namespace orrery::workload {

/// A pass of one micro-batch through one virtual stage.
struct Pass {
  bool forward = true;
  std::uint32_t micro_batch = 0;
  std::uint32_t chunk = 0;  ///< which of the NPU's virtual stages: number chunk * pp + stage of the model

  friend bool operator==(const Pass&, const Pass&) = default;
};

/// Returns the passes of a stage in order. O(passes).
std::vector<Pass> passes_of(const Parallel& parallel, std::uint32_t stage);

}  // namespace orrery::workload
