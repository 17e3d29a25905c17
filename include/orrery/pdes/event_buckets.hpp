#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/pdes/event.hpp"
#include "orrery/pdes/event_lists.hpp"

namespace orrery::pdes {

/// Events by their times, in buckets of 2^n ps that are emptied one after the other: the rung of a ladder queue. The
/// events that it is built of lie in one array, so that they come from memory in sequence. Those that come later are in
/// lists. Nothing allocates memory once it has grown.
class EventBuckets {
 public:
  /// Fills the buckets, which must all be empty, with the earliest events, about three quarters of them or more, and
  /// takes these out of `events`, of which there must be 4 at least. O(events).
  void build(std::vector<Event>& events);

  /// Returns whether there is a bucket for this time, which must not be before end().
  bool covers(Time time) const { return bucket_of(time) < buckets_.size(); }
  /// Adds an event for whose time there is a bucket.
  void add(const Event& event) { lists_.prepend(buckets_[bucket_of(event.time)].later, event); }

  /// Empties the next bucket that has events, and puts them into `run` in the order in which they came. Returns false
  /// if all buckets are empty.
  bool take_next(std::vector<Event>& run);
  /// Returns the time at which the bucket that was emptied last ends, and that of the first event of all before.
  Time end() const;

  /// Says that one of the events that `take_next` has returned is handled. Calls prefetch(event) for up to two events
  /// that are probably handled some places later, and fetches others into the cache.
  template <class Prefetch>
  void advance(Prefetch&& prefetch) {
    if (ahead_ != EventLists::empty) ahead_ = lists_.next(ahead_);
    const std::size_t until = std::min(++soon_, sorted_.size());
    for (int step = 0; step < 2 && prefetched_ < until; ++step) prefetch(sorted_[prefetched_++]);
  }

  /// Calls visit(event) for all events, in no particular order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = taken_; i < sorted_.size(); ++i) visit(sorted_[i]);
    for (const Bucket& bucket : buckets_) lists_.for_each(bucket.later, visit);
  }

 private:
  /// How many places ahead events are prefetched.
  static constexpr std::size_t distance = 16;
  struct Bucket {
    EventLists::List later = EventLists::empty;  ///< events that were added
    std::uint32_t end = 0;  ///< end of its other events in sorted_; they begin where those of the bucket before end
  };

  std::uint64_t bucket_of(Time time) const { return static_cast<std::uint64_t>((time - start_).ps()) >> shift_; }

  std::vector<Bucket> buckets_;
  std::size_t next_ = 0;  // of the buckets; those before are empty
  Time start_;            // of the first bucket
  std::uint32_t shift_ = 0;
  std::vector<Event> sorted_;   // by bucket
  std::size_t taken_ = 0;       // those of sorted_ before have been returned,
  std::size_t prefetched_ = 0;  // have been prefetched,
  std::size_t soon_ = 0;        // are handled soon
  EventLists lists_;
  EventLists::List ahead_ = EventLists::empty;  // in the next bucket, which is fetched while events are handled
};

}  // namespace orrery::pdes
