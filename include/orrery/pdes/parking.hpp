#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "orrery/pdes/event_lists.hpp"

namespace orrery::pdes {

/// Events set aside because their LPs wait for something: by LP, and the earliest over all LPs. park costs O(log n),
/// unpark O(events of the LP). No allocation once it has grown.
class Parking {
 public:
  explicit Parking(std::size_t num_lps) : spots_(num_lps) {}

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  bool holds(LpId lp) const { return spots_[lp.index()].events != EventLists::empty; }
  /// Of the earliest event, max() if there is none.
  Time time() const { return order_.empty() ? Time::max() : order_.top().first; }
  /// The LP of the earliest event. Must not be empty.
  LpId first() const { return order_.top().second; }

  void park(const Event& event) {
    Spot& spot = spots_[event.target.index()];
    if (!holds(event.target) || event.time < spot.time) {
      spot.time = event.time;
      order_.emplace(event.time, event.target);
    }
    lists_.prepend(spot.events, event);
    ++size_;
  }

  /// Hands out all events of an LP, in no particular order.
  template <class Take>
  void unpark(LpId lp, Take&& take) {
    lists_.drain(spots_[lp.index()].events, [&](const Event& event) {
      take(event);
      --size_;
    });
    while (!order_.empty() && !is_current(order_.top())) order_.pop();
  }

 private:
  using Entry = std::pair<Time, LpId>;
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.first != b.first ? a.first > b.first : a.second > b.second;
    }
  };
  struct Spot {
    Time time;
    EventLists::List events = EventLists::empty;
  };

  bool is_current(const Entry& entry) const {
    const Spot& spot = spots_[entry.second.index()];
    return spot.events != EventLists::empty && spot.time == entry.first;
  }

  std::vector<Spot> spots_;  // [LPs]
  EventLists lists_;
  std::size_t size_ = 0;
  std::priority_queue<Entry, std::vector<Entry>, Later> order_;  // may hold entries that are no longer current
};

}  // namespace orrery::pdes
