#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "orrery/pdes/event.hpp"

namespace orrery::pdes {

/// A 4-ary heap of events, the earliest first. push and pop cost O(log4 n). Nothing allocates memory once it has grown.
class EventHeap {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  const Event& top() const { return heap_.front(); }
  /// Returns all events in no particular order.
  const std::vector<Event>& all() const { return heap_; }

  void push(const Event& event) {
    heap_.push_back(event);
    rise(event, heap_.size() - 1);
  }

  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first;
  }

 private:
  /// Puts `event` where the root was. The event came from the bottom and most likely belongs there. So the gap sinks
  /// all the way along the least children, and `event` rises from there. The choice of a child has no branches to
  /// mispredict.
  void sink(const Event& event) {
    const std::size_t n = heap_.size();
    std::size_t i = 0;
    for (std::size_t first = 1; first < n; first = 4 * i + 1) {
      std::size_t least = first;
      if (first + 4 <= n) {
        const Event* child = heap_.data() + first;
        const std::size_t left = before(child[1], child[0]);
        const std::size_t right = 2 + static_cast<std::size_t>(before(child[3], child[2]));
        least = first + left + (right - left) * static_cast<std::size_t>(before(child[right], child[left]));
      } else {
        for (std::size_t child = first + 1; child < n; ++child)
          if (before(heap_[child], heap_[least])) least = child;
      }
      heap_[i] = heap_[least];
      i = least;
    }
    rise(event, i);
  }

  /// Puts `event` at position `i`, or as far above as it belongs.
  void rise(const Event& event, std::size_t i) {
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!before(event, heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = event;
  }

  std::vector<Event> heap_;
};

}  // namespace orrery::pdes
