#pragma once

#include <compare>
#include <cstdint>
#include <utility>

#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery {

/// The place of an event among simultaneous events. In the natural order every place is unknown, and whoever passes a
/// place on does not look into it (docs/architecture.md, "The order of simultaneous events").
///
/// In ASTRA-sim's order a place is the history of the event (docs/model.md, 2). The event that was scheduled first
/// comes first. Of events that were scheduled at one time, the one comes first whose scheduling event comes first, and
/// so on back to the first events of NPUs, which come in the order of the NPUs. What one event schedules comes in the
/// order in which it does so.
///
/// A history shares its earlier steps with other histories. It goes back `most_steps` steps; what lies farther back
/// counts by its NPU, so a history means the same on every rank. A copy takes constant time. A comparison mostly takes
/// constant time, and O(most_steps) at worst.
class EventPlace {
 public:
  static constexpr std::uint32_t most_steps = 512;

  /// Makes an unknown place, which comes before all others.
  EventPlace() = default;
  EventPlace(const EventPlace& other) : step_(other.step_) { hold(); }
  EventPlace(EventPlace&& other) noexcept : step_(std::exchange(other.step_, nullptr)) {}
  EventPlace& operator=(EventPlace other) noexcept {
    std::swap(step_, other.step_);
    return *this;
  }
  ~EventPlace() {
    if (step_ != nullptr) release(step_);
  }

  /// Returns the place of the first event of an NPU.
  static EventPlace first_of(NpuId npu);
  /// Returns the place of what this event schedules at `now`. Of all that it schedules, a lower number comes first.
  EventPlace next(Time now, std::uint32_t number) const;
  /// Returns the place of what the event that scheduled this one schedules directly after it.
  EventPlace beside() const;
  /// Returns the place of the event that scheduled this one; unknown if that event is not known.
  EventPlace cause() const;

  bool is_known() const { return step_ != nullptr; }

  friend std::strong_ordering operator<=>(const EventPlace& one, const EventPlace& other);
  friend bool operator==(const EventPlace& one, const EventPlace& other) { return (one <=> other) == 0; }

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

  explicit EventPlace(Step* step) : step_(step) {}

  static constexpr Time before_all() { return Time::from_ps(-1); }
  void hold() const {
    if (step_) ++step_->uses;
  }
  static void release(Step* step);
  EventPlace shortened() const;

  Step* step_ = nullptr;
};

}  // namespace orrery
