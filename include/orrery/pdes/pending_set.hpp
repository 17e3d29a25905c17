#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/pdes/event_heap.hpp"
#include "orrery/pdes/event_lists.hpp"

namespace orrery::pdes {

/// The events that wait, earliest first. Most events are far when they come. They are put in order only when their time
/// is near, a few at a time: this is a ladder queue (Tang, Goh, Thng 2005) of one rung. push and pop cost O(1) where
/// times spread, O(log n) at worst. Far events of one time that come in order, as those of clients that behave alike
/// do, are not sorted. Nothing allocates memory once it has grown.
class PendingSet {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t peak() const { return peak_; }
  /// Returns the earliest event. There must be one.
  const Event& top() const { return heap_is_first_ ? heap_.top() : run_[next_]; }
  Time time() const { return empty() ? Time::max() : top().time; }

  /// Adds an event, whose time must be before Time::max().
  void push(const Event& event) {
    if (++size_ > peak_) peak_ = size_;
    if (event.time < near_until_) {
      heap_is_first_ = heap_is_first_ || next_ == run_.size() || before(event, run_[next_]);
      heap_.push(event);
      return;
    }
    push_far(event);
    if (nothing_is_near()) approach();
  }

  /// Takes the earliest event out and returns it. There must be one.
  Event pop() {
    const Event first = heap_is_first_ ? heap_.pop() : run_[next_++];
    if (ahead_ != EventLists::empty) ahead_ = lists_.next(ahead_);
    if (--size_ > 0 && nothing_is_near()) approach();
    heap_is_first_ = !heap_.empty() && (next_ == run_.size() || before(heap_.top(), run_[next_]));
    return first;
  }

  /// Calls visit(event) for all events, in no particular order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = next_; i < run_.size(); ++i) visit(run_[i]);
    for (const Event& event : heap_.all()) visit(event);
    for (const EventLists::List bucket : rung_) lists_.for_each(bucket, visit);
    for (const Event& event : beyond_) visit(event);
  }

 private:
  bool nothing_is_near() const { return next_ == run_.size() && heap_.empty(); }
  void push_far(const Event& event) {
    const auto bucket = bucket_of(event.time);
    if (bucket < rung_.size())
      lists_.prepend(rung_[bucket], event);
    else
      beyond_.push_back(event);
  }
  std::uint64_t bucket_of(Time time) const { return static_cast<std::uint64_t>((time - rung_start_).ps()) >> shift_; }
  void approach();
  void build_rung();

  // Events before near_until_: those in order, from next_ on, and those that came since these were put in order.
  std::vector<Event> run_;
  std::size_t next_ = 0;
  EventHeap heap_;
  bool heap_is_first_ = false;
  Time near_until_;
  // Far events: buckets of 2^shift_ ps. Those before bucket_ are empty.
  std::vector<EventLists::List> rung_;
  std::size_t bucket_ = 0;
  Time rung_start_;
  std::uint32_t shift_ = 0;
  EventLists lists_;
  EventLists::List ahead_ = EventLists::empty;  // in bucket_, which is fetched into the cache while events are popped
  // Events that are later than all buckets.
  std::vector<Event> beyond_;

  std::size_t size_ = 0, peak_ = 0;
};

}  // namespace orrery::pdes
