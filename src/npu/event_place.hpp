#pragma once

#include <compare>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery::npu {

/// Where an event of an NPU stands among those of the same time, where the rules have them one after the other and only
/// their order on this NPU matters (docs/model.md, 2). The event that has been known to come for longest is the first;
/// then the one that the NPU with the lowest number brought about, and that NPU's own before another's.
struct EventPlace {
  Time since;                 ///< when it became known that the event comes
  NpuId origin;               ///< the NPU that brought it about
  bool is_elsewhere = false;  ///< by a message to another NPU

  friend auto operator<=>(const EventPlace&, const EventPlace&) = default;
};

}  // namespace orrery::npu
