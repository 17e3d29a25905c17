#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "orrery/pdes/event_lists.hpp"

namespace orrery::pdes {

/// Events that are set aside because their LPs wait for something. It finds them by LP, and knows the earliest one of
/// each cell, a set of LPs. There is one cell if nothing else is said.
/// `defer` costs O(log n), `release` O(events of the LP). Nothing allocates memory once it has grown.
class DeferredEvents {
 public:
  explicit DeferredEvents(std::size_t num_lps, std::size_t num_cells = 1) : entries_(num_lps), order_(num_cells) {}

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// Returns whether events of this LP are set aside.
  bool holds(LpId lp) const { return entries_[lp.index()].events != EventLists::empty; }
  /// Returns the time of the earliest event, max() if there is none.
  Time time(std::size_t cell = 0) const { return order_[cell].empty() ? Time::max() : order_[cell].top().first; }
  /// Returns the LP of the earliest event. There must be one.
  LpId first_lp(std::size_t cell = 0) const { return order_[cell].top().second; }

  void defer(const Event& event, std::size_t cell = 0) {
    Entry& entry = entries_[event.target.index()];
    if (!holds(event.target) || event.time < entry.time) {
      entry.time = event.time;
      order_[cell].emplace(event.time, event.target);
    }
    lists_.prepend(entry.events, event);
    ++size_;
  }

  /// Calls take(event) for all events of an LP, in no particular order, and forgets them.
  template <class Take>
  void release(LpId lp, Take&& take, std::size_t cell = 0) {
    lists_.drain(entries_[lp.index()].events, [&](const Event& event) {
      take(event);
      --size_;
    });
    auto& order = order_[cell];
    while (!order.empty() && !is_current(order.top())) order.pop();
  }

  /// Calls visit(event) for all events, in no particular order. O(LPs + events).
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& entry : entries_) lists_.for_each(entry.events, visit);
  }

 private:
  using TimeOfLp = std::pair<Time, LpId>;
  struct Later {
    bool operator()(const TimeOfLp& a, const TimeOfLp& b) const {
      return a.first != b.first ? a.first > b.first : a.second > b.second;
    }
  };
  struct Entry {
    Time time;  // of the earliest of its events
    EventLists::List events = EventLists::empty;
  };

  bool is_current(const TimeOfLp& item) const {
    const Entry& entry = entries_[item.second.index()];
    return entry.events != EventLists::empty && entry.time == item.first;
  }

  std::vector<Entry> entries_;  // [LPs]
  EventLists lists_;
  std::size_t size_ = 0;
  // [cells] may hold items that are no longer current
  std::vector<std::priority_queue<TimeOfLp, std::vector<TimeOfLp>, Later>> order_;
};

}  // namespace orrery::pdes
