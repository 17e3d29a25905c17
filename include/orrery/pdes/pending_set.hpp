#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/pdes/event_buckets.hpp"
#include "orrery/pdes/event_heap.hpp"

namespace orrery::pdes {

/// The events that wait, earliest first. Most events are far when they come. They are put in order only when their time
/// is near, a few at a time: this is a ladder queue (Tang, Goh, Thng 2005) of one rung. push and pop cost O(1) where
/// times spread, O(log n) at worst. Many events of one time that come in order, as those of clients that behave alike
/// do, need no sorting. Nothing allocates memory once it has grown.
class PendingSet {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t peak() const { return peak_; }
  /// Returns the time of the earliest event; max() if there is none.
  Time time() const { return time_; }

  /// Adds an event, whose time must be before Time::max().
  void push(const Event& event) {
    if (++size_ > peak_) peak_ = size_;
    if (size_ == 1) near_until_ = std::max(near_until_, event.time + Time::from_ps(1));
    if (event.time >= near_until_) return push_far(event);
    time_ = std::min(time_, event.time);
    pile_.push_back(event);
  }

  /// Takes the earliest event out and returns it. There must be one. Calls prefetch(event) for up to two events that
  /// probably come out some calls later.
  template <class Prefetch>
  Event pop(Prefetch&& prefetch) {
    if (!pile_.empty()) clear_pile();
    const Event first = heap_is_first_ ? heap_.pop() : run_[next_++];
    buckets_.advance(prefetch);
    if (--size_ > 0 && next_ == run_.size() && heap_.empty()) approach();
    find_first();
    return first;
  }
  Event pop() {
    return pop([](const Event&) {});
  }

  /// Calls visit(event) for all events, in no particular order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = next_; i < run_.size(); ++i) visit(run_[i]);
    for (const Event& event : pile_) visit(event);
    for (const Event& event : heap_.all()) visit(event);
    buckets_.for_each(visit);
    for (const Event& event : beyond_) visit(event);
  }

  /// Takes out the events for which is_wanted(event), and returns them in no particular order. O(events).
  template <class IsWanted>
  std::vector<Event> take(IsWanted&& is_wanted) {
    std::vector<Event> taken, left;
    for_each([&](const Event& event) { (is_wanted(event) ? taken : left).push_back(event); });
    if (!taken.empty()) refill(std::move(left));
    return taken;
  }

 private:
  void push_far(const Event& event) {
    if (buckets_.covers(event.time))
      buckets_.add(event);
    else
      beyond_.push_back(event);
  }
  /// Finds the earliest event. The pile must be empty.
  void find_first() {
    heap_is_first_ = !heap_.empty() && (next_ == run_.size() || before(heap_.top(), run_[next_]));
    time_ = empty() ? Time::max() : heap_is_first_ ? heap_.top().time : run_[next_].time;
  }
  void clear_pile();
  void approach();
  void refill(std::vector<Event> events);

  // Near events, before near_until_. A set that is not empty has at least one. Those in run_ are in order, from next_
  // on. Those in the heap came after run_ was put in order. Those in the pile came after the last event was taken out.
  std::vector<Event> run_;
  std::size_t next_ = 0;
  EventHeap heap_;
  std::vector<Event> pile_;
  std::vector<Event> merged_;  // becomes run_ when the pile is merged with it
  Time near_until_;
  bool heap_is_first_ = false;  // means nothing while there is a pile
  Time time_ = Time::max();     // of the earliest event
  EventBuckets buckets_;        // far events
  std::vector<Event> beyond_;   // events that are later than all buckets

  std::size_t size_ = 0, peak_ = 0;
};

}  // namespace orrery::pdes
