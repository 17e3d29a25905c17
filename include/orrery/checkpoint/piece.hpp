#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/base/ids.hpp"

namespace orrery::checkpoint {

/// What a checkpoint holds of one logical process, which belongs on the rank that hosts it.
struct Piece {
  /// State without a logical process, such as sums over all of them. It goes to rank 0.
  static constexpr LpId of_all{~0U};

  LpId lp;
  std::vector<std::byte> bytes;
  std::uint32_t simulation = 0;  ///< number of the simulation among those of a run that a checkpoint holds
};

}  // namespace orrery::checkpoint
