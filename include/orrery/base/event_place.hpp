#pragma once

#include <array>
#include <compare>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery {

/// Where an event of an NPU, and what the NPU asks of a server because of it, stands among those of the same time,
/// where the rules have them one after the other (docs/model.md, 2). The event that has been known to come for longest
/// is the first; then the one that the NPU with the lowest number brought about, and that NPU's own before another's.
struct EventPlace {
  Time since;                 ///< when it became known that the event comes
  NpuId origin;               ///< the NPU that brought it about
  bool is_elsewhere = false;  ///< the event is of another NPU than `origin`

  friend auto operator<=>(const EventPlace&, const EventPlace&) = default;
};

/// Where an event stands among those of the same time in a network that simulates every link, likewise. The event that
/// was scheduled first is the first. Of several, that one which was scheduled by the event that itself was scheduled
/// first, and so on; then the one that goes back to the NPU with the lowest number.
struct EventHistory {
  std::array<Time, 3> since = {};  ///< when it was scheduled, when the event that scheduled it was, and so on
  NpuId root;                      ///< whose first event led to it

  /// Returns the history of what is scheduled at `now` while this event is handled.
  EventHistory next(Time now) const { return {{now, since[0], since[1]}, root}; }

  friend auto operator<=>(const EventHistory&, const EventHistory&) = default;
};

}  // namespace orrery
