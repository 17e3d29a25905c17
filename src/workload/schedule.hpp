#pragma once

#include <vector>

#include "orrery/workload/description.hpp"

namespace orrery::workload {

/// One micro-batch's passage through one virtual stage.
struct Pass {
  bool forward = true;
  std::uint32_t micro_batch = 0;
  std::uint32_t chunk = 0;  ///< which of the NPU's virtual stages: the model's is chunk * pp + stage

  friend bool operator==(const Pass&, const Pass&) = default;
};

/// The passes of a stage in order. O(their number).
std::vector<Pass> passes_of(const Parallel& parallel, std::uint32_t stage);

}  // namespace orrery::workload
