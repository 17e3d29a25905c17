#pragma once

#include <compare>
#include <cstdint>
#include <utility>

#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery {

/// Where an event stands among those of the same time, where events of one time come in the order in which they were
/// scheduled (docs/model.md, 2). The event that was scheduled first is the first. Of several, that one which was
/// scheduled by the event that itself comes first, and so on back to the first events of NPUs, which come in the order
/// of the NPUs. What one event schedules comes in the order in which it does so.
///
/// A history shares what lies behind it with other histories. It goes back `most_steps` steps; what lies farther back
/// counts by its NPU. So it means the same on every rank. A copy takes constant time, a comparison mostly too, and
/// O(most_steps) in the worst case.
class EventHistory {
 public:
  static constexpr std::uint32_t most_steps = 512;

  /// Makes the history of no event. It comes before all others.
  EventHistory() = default;
  EventHistory(const EventHistory& other) : step_(other.step_) { hold(); }
  EventHistory(EventHistory&& other) noexcept : step_(std::exchange(other.step_, nullptr)) {}
  EventHistory& operator=(EventHistory other) noexcept {
    std::swap(step_, other.step_);
    return *this;
  }
  ~EventHistory() { release(step_); }

  /// Returns the history of the first event of an NPU.
  static EventHistory first_of(NpuId npu);
  /// Returns the history of what this event schedules at `now`. Of all that it schedules, what has a lower number comes
  /// first.
  EventHistory next(Time now, std::uint32_t number) const;
  /// Returns the history of what the event that scheduled this one schedules directly after it.
  EventHistory beside() const;
  /// Returns the history of the event that scheduled this one; of no event if that is not known.
  EventHistory cause() const;

  bool is_known() const { return step_ != nullptr; }

  friend std::strong_ordering operator<=>(const EventHistory& one, const EventHistory& other);
  friend bool operator==(const EventHistory& one, const EventHistory& other) { return (one <=> other) == 0; }

  void serialize(Archive& archive);

 private:
  struct Step {
    Time since;
    Step* cause;           ///< held; null for the first event of an NPU, and where the history ends
    std::uint32_t number;  ///< among what the cause has scheduled
    NpuId root;
    std::uint32_t length;  ///< steps from here to the end
    std::uint32_t uses;
  };

  struct Steps;

  explicit EventHistory(Step* step) : step_(step) {}

  static constexpr Time before_all() { return Time::from_ps(-1); }
  void hold() const {
    if (step_) ++step_->uses;
  }
  static void release(Step* step);
  EventHistory shortened() const;

  Step* step_ = nullptr;
};

}  // namespace orrery
