#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery {

/// Where an event of an NPU, and what the NPU asks of a server because of it, stands among those of the same time,
/// where the rules have them one after the other (docs/model.md, 2). The event that has been known to come for longest
/// is the first; then the one that was brought about by an event that had been known for longer; then the one that goes
/// back to the NPU with the lowest number, and that NPU's own before another's.
struct EventPlace {
  Time since;    ///< when it became known that the event comes
  Time before;   ///< since when the event that brought it about had been known; `since` if that is not known
  NpuId origin;  ///< the NPU that it goes back to
  bool is_elsewhere = false;  ///< it goes back to a message of `origin` to another NPU

  /// Returns the place of what becomes known at `now` because of this event.
  EventPlace next(Time now) const { return {now, since, origin, is_elsewhere}; }
  /// Returns all but `since` as one number. Differences of more than 2 s count as 2 s.
  std::uint64_t packed() const {
    constexpr std::uint64_t longest = (std::uint64_t{1} << 31U) - 1;
    const std::uint64_t apart = std::min(static_cast<std::uint64_t>((since - before).ps()) / 1000, longest);
    return apart << 33U | std::uint64_t{origin.value()} << 1U | (is_elsewhere ? 1U : 0U);
  }
  /// Returns the place for which `packed` gave the number.
  static EventPlace unpacked(Time since, std::uint64_t number) {
    const auto apart = Time::from_ns(static_cast<std::int64_t>(number >> 33U));
    return {since, since - apart, NpuId(static_cast<std::uint32_t>(number >> 1U)), (number & 1U) != 0};
  }

  friend auto operator<=>(const EventPlace&, const EventPlace&) = default;
};

}  // namespace orrery
