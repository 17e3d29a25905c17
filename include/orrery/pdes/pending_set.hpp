#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "orrery/pdes/event.hpp"

namespace orrery::pdes {

/// The events that wait, earliest first: a 4-ary heap. push and pop cost O(log4 n); no allocation once it has grown.
class PendingSet {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  std::size_t peak() const { return peak_; }
  const Event& top() const { return heap_.front(); }
  Time time() const { return heap_.empty() ? Time::max() : heap_.front().time; }

  void push(const Event& event) {
    heap_.push_back(event);
    if (heap_.size() > peak_) peak_ = heap_.size();
    std::size_t i = heap_.size() - 1;
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!before(event, heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = event;
  }

  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first;
  }

 private:
  /// Puts `event` where the root was and lets it sink.
  void sink(const Event& event) {
    const std::size_t n = heap_.size();
    std::size_t i = 0;
    for (;;) {
      const std::size_t first = 4 * i + 1;
      if (first >= n) break;
      std::size_t least = first;
      const std::size_t end = first + 4 < n ? first + 4 : n;
      for (std::size_t child = first + 1; child < end; ++child)
        if (before(heap_[child], heap_[least])) least = child;
      if (!before(heap_[least], event)) break;
      heap_[i] = heap_[least];
      i = least;
    }
    heap_[i] = event;
  }

  std::vector<Event> heap_;
  std::size_t peak_ = 0;
};

}  // namespace orrery::pdes
