#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace orrery::serving {

/// A queue of slots from which those in the middle can leave. All functions cost O(1), amortised.
class WaitingQueue {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot end = std::numeric_limits<Slot>::max();

  void push_back(Slot slot) { link(slot, last_, end); }
  void push_front(Slot slot) { link(slot, end, first_); }
  void remove(Slot slot) {
    const auto [previous, next] = links_[slot];
    (previous == end ? first_ : links_[previous].next) = next;
    (next == end ? last_ : links_[next].previous) = previous;
    --size_;
  }
  Slot front() const { return first_; }
  Slot after(Slot slot) const { return links_[slot].next; }
  std::uint32_t size() const { return size_; }

 private:
  struct Links {
    Slot previous = end, next = end;
  };
  void link(Slot slot, Slot previous, Slot next) {
    if (slot >= links_.size()) links_.resize(slot + 1);
    links_[slot] = {previous, next};
    (previous == end ? first_ : links_[previous].next) = slot;
    (next == end ? last_ : links_[next].previous) = slot;
    ++size_;
  }

  std::vector<Links> links_;
  Slot first_ = end, last_ = end;
  std::uint32_t size_ = 0;
};

}  // namespace orrery::serving
