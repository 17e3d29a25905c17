#include "orrery/pdes/event_buckets.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace orrery::pdes {
namespace {

constexpr std::size_t events_per_bucket = 4;  // when the buckets are made
constexpr std::size_t largest_sample = 64;    // of times

/// Returns a time that three quarters of the events do not exceed, as far as a sample tells. A few late events must not
/// make the buckets wide.
Time most_are_until(const std::vector<Event>& events) {
  std::array<Time, largest_sample> times;
  const std::size_t count = std::min(events.size(), times.size());
  for (std::size_t i = 0; i < count; ++i) times[i] = events[i * events.size() / count].time;
  const auto quantile = times.begin() + static_cast<std::ptrdiff_t>(count * 3 / 4);
  std::nth_element(times.begin(), quantile, times.begin() + static_cast<std::ptrdiff_t>(count));
  return *quantile;
}

}  // namespace

void EventBuckets::build(std::vector<Event>& events) {
  start_ = std::ranges::min(events, {}, &Event::time).time;
  const auto num_buckets = std::bit_ceil(events.size() / events_per_bucket);
  const auto span = static_cast<std::uint64_t>((most_are_until(events) - start_).ps());
  const auto bits = std::bit_width(span), bits_of_buckets = std::bit_width(std::uint64_t{num_buckets} - 1);
  shift_ = static_cast<std::uint32_t>(bits > bits_of_buckets ? bits - bits_of_buckets : 0);
  buckets_.assign(num_buckets, {});
  next_ = taken_ = prefetched_ = 0;
  for (const Event& event : events)
    if (covers(event.time)) ++buckets_[bucket_of(event.time)].end;
  std::uint32_t end = 0;
  for (Bucket& bucket : buckets_) bucket.end = std::exchange(end, end + bucket.end);
  sorted_.resize(end);
  std::size_t kept = 0;
  for (const Event& event : events) {
    if (covers(event.time))
      sorted_[buckets_[bucket_of(event.time)].end++] = event;
    else
      events[kept++] = event;
  }
  events.resize(kept);
}

bool EventBuckets::take_next(std::vector<Event>& run) {
  while (next_ < buckets_.size() && buckets_[next_].end == taken_ && buckets_[next_].later == EventLists::empty)
    ++next_;
  if (next_ == buckets_.size()) return false;
  Bucket& nearest = buckets_[next_++];
  run.assign(sorted_.data() + taken_, sorted_.data() + nearest.end);
  prefetched_ = std::max(prefetched_, taken_);
  soon_ = taken_ + distance;
  taken_ = nearest.end;
  const auto num_sorted = static_cast<std::ptrdiff_t>(run.size());
  lists_.drain(nearest.later, [&](const Event& event) { run.push_back(event); });
  std::reverse(run.begin() + num_sorted, run.end());
  ahead_ = next_ < buckets_.size() ? buckets_[next_].later : EventLists::empty;
  return true;
}

Time EventBuckets::end() const {
  const auto end = static_cast<std::uint64_t>(next_) << shift_,
             most = static_cast<std::uint64_t>((Time::max() - start_).ps());
  return start_ + Time::from_ps(static_cast<std::int64_t>(std::min(end, most)));
}

}  // namespace orrery::pdes
