#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "orrery/pdes/event.hpp"
#include "orrery/pdes/event_heap.hpp"

namespace orrery::pdes {

/// The pending events of a cell, the earliest first. Most cells have few events. So this keeps the first few in order
/// and the others in a heap. push costs O(few + log4 n), pop O(1) while there are few. Nothing allocates memory once it
/// has grown.
class CellEvents {
 public:
  bool empty() const { return first_.empty(); }
  const Event& top() const { return first_.back(); }

  void push(const Event& event) {
    if (!others_.empty() && before(others_.top(), event)) return others_.push(event);
    auto place = first_.end();
    while (place != first_.begin() && before(place[-1], event)) --place;
    first_.insert(place, event);
    if (first_.size() > few) move_last();
  }

  Event pop() {
    const Event first = first_.back();
    first_.pop_back();
    if (first_.empty() && !others_.empty()) move_first();
    return first;
  }

  /// Calls visit(event) for all events, in no particular order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Event& event : first_) visit(event);
    for (const Event& event : others_.all()) visit(event);
  }

 private:
  static constexpr std::size_t few = 24;

  /// Moves the later half of those that are kept in order to the others.
  void move_last() {
    const auto half = first_.begin() + few / 2;
    for (auto event = first_.begin(); event != half; ++event) others_.push(*event);
    first_.erase(first_.begin(), half);
  }
  /// Puts the earliest of the others in order.
  void move_first() {
    first_.resize(std::min(few / 2, others_.size()));
    for (auto event = first_.rbegin(); event != first_.rend(); ++event) *event = others_.pop();
  }

  std::vector<Event> first_;  // the last is the earliest; none is later than any of the others
  EventHeap others_;
};

}  // namespace orrery::pdes
