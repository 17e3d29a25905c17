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
/// A history shares its earlier steps with other histories. Steps lie in blocks: the first history that goes on from
/// the last step of a block writes its step behind it, and any other begins a block of its own. It goes back
/// `most_steps` steps; what lies farther back counts by its NPU, so a history means the same on every rank. A copy
/// takes constant time. A comparison mostly takes constant time, and O(most_steps) at worst.
class EventPlace {
 public:
  static constexpr std::uint32_t most_steps = 512;

  /// Makes an unknown place, which comes before all others.
  EventPlace() = default;
  EventPlace(const EventPlace& other) : block_(other.block_), size_(other.size_) {
    if (block_ != nullptr) ++block_->uses;
  }
  EventPlace(EventPlace&& other) noexcept : block_(std::exchange(other.block_, nullptr)), size_(other.size_) {}
  EventPlace& operator=(EventPlace other) noexcept {
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~EventPlace() {
    if (block_ != nullptr && --block_->uses == 0) free(block_);
  }

  /// Returns the place of the first event of an NPU.
  static EventPlace first_of(NpuId npu);
  /// Returns the place of what this event schedules at `now`. Of all that it schedules, a lower number comes first.
  EventPlace next(Time now, std::uint32_t number) const&;
  EventPlace next(Time now, std::uint32_t number) &&;
  /// Returns the place of what the event that scheduled this one schedules directly after it.
  EventPlace beside() const;
  /// Returns the place of the event that scheduled this one; unknown if that event is not known.
  EventPlace cause() const;

  bool is_known() const { return block_ != nullptr; }

  friend std::strong_ordering operator<=>(const EventPlace& one, const EventPlace& other);
  friend bool operator==(const EventPlace& one, const EventPlace& other) { return (one <=> other) == 0; }

  void serialize(Archive& archive);
  /// Returns how many blocks of steps there are in this process, for tests.
  static std::uint64_t num_blocks();

 private:
  struct Step {
    Time since;
    std::uint32_t number;  ///< among what the cause has scheduled
  };
  /// Steps that follow each other. Histories that end at any of them share the block.
  struct Block {
    Block* before;                ///< held; its first `size_before` steps come before these; null: the history ends
    std::uint32_t size_before;    ///< 0 without `before`
    std::uint32_t length_before;  ///< steps from there to the end
    NpuId root;
    std::uint32_t uses;  ///< places, and blocks behind it, that hold it
    std::uint32_t size;
    std::uint32_t capacity;

    Step* steps() { return reinterpret_cast<Step*>(this + 1); }
  };
  struct Blocks;
  class Walk;

  EventPlace(Block* block, std::uint32_t size) : block_(block), size_(size) {}

  static constexpr Time before_all() { return Time::from_ps(-1); }
  static void free(Block* block);
  const Step& last() const { return block_->steps()[size_ - 1]; }
  std::uint32_t length() const { return block_->length_before + size_; }
  bool append(const Step& step) const;
  EventPlace branch(const Step& step) &&;
  EventPlace shortened() const;

  Block* block_ = nullptr;
  std::uint32_t size_ = 0;  ///< steps of the block that belong to this history
};

}  // namespace orrery
