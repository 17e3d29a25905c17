#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/event_place.hpp"

namespace orrery::npu {

/// The histories of an NPU's events (Options::keeps_histories): of the one at hand, and of those that the NPU has
/// scheduled for itself. All of the latter that come at one time have the history of the first that was scheduled.
class Histories {
 public:
  const EventHistory& at_hand() const { return at_hand_; }
  void set_at_hand(const EventHistory& history) { at_hand_ = history; }

  /// Takes note of an event with this history that the NPU schedules for itself. Returns the history that it gets.
  EventHistory store(Time time, const EventHistory& history) {
    const auto place = std::ranges::lower_bound(in_store_, time, {}, &Stored::first);
    if (place != in_store_.end() && place->first == time) return place->second;
    return in_store_.insert(place, {time, history})->second;
  }
  /// Returns the history of what the NPU has scheduled for `now`; none if there is nothing.
  std::optional<EventHistory> in_store(Time now) const {
    const auto found = std::ranges::lower_bound(in_store_, now, {}, &Stored::first);
    if (found == in_store_.end() || found->first != now) return {};
    return found->second;
  }
  /// Forgets what it had scheduled until `now`.
  void forget(Time now) {
    in_store_.erase(in_store_.begin(), std::ranges::upper_bound(in_store_, now, {}, &Stored::first));
  }

  void serialize(Archive& archive) { archive(in_store_); }

 private:
  using Stored = std::pair<Time, EventHistory>;

  EventHistory at_hand_;
  std::vector<Stored> in_store_;  // by time; few
};

}  // namespace orrery::npu
