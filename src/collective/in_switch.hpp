#pragma once

#include "line.hpp"

namespace orrery::collective {

/// What a phase in a switch that reduces and copies puts on the links of a line (docs/collectives.md).
struct InSwitchLoad {
  std::uint32_t senders = 0;  ///< places that send; the other places receive only
  Bytes up;                   ///< that each of them sends
  Bytes down;                 ///< that a place receives
};
InSwitchLoad in_switch_load(const PhaseShape& shape, std::uint32_t size);

}  // namespace orrery::collective
