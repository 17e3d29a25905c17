#include "orrery/pdes/pending_set.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace orrery::pdes {
namespace {

constexpr std::size_t few = 32;               // events that need no buckets
constexpr std::size_t events_per_bucket = 4;  // when a rung is built
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

void put_in_order(std::vector<Event>& events) {
  const auto earlier = [](const Event& a, const Event& b) { return before(a, b); };
  if (!std::ranges::is_sorted(events, earlier)) std::ranges::sort(events, earlier);
}

}  // namespace

/// Makes the earliest events near. There must be far events, and no near ones.
void PendingSet::approach() {
  run_.clear();
  next_ = 0;
  for (;;) {
    while (bucket_ < rung_.size() && rung_[bucket_] == EventLists::empty) ++bucket_;
    if (bucket_ < rung_.size()) break;
    build_rung();
    if (!run_.empty()) return;
  }
  lists_.drain(rung_[bucket_++], [&](const Event& event) { run_.push_back(event); });
  std::ranges::reverse(run_);  // in the order in which they came
  put_in_order(run_);
  ahead_ = bucket_ < rung_.size() ? rung_[bucket_] : EventLists::empty;
  const auto end = static_cast<std::uint64_t>(bucket_) << shift_,
             most = static_cast<std::uint64_t>((Time::max() - rung_start_).ps());
  near_until_ = rung_start_ + Time::from_ps(static_cast<std::int64_t>(std::min(end, most)));
}

/// Puts the events beyond the buckets in order if they are few; else spreads the earliest of them over new buckets.
void PendingSet::build_rung() {
  rung_.clear();
  bucket_ = 0;
  if (beyond_.size() <= few) {
    run_.swap(beyond_);
    put_in_order(run_);
    near_until_ = rung_start_ = run_.back().time + Time::from_ps(1);
    return;
  }
  rung_start_ = std::ranges::min(beyond_, {}, &Event::time).time;
  const auto buckets = std::bit_ceil(beyond_.size() / events_per_bucket);
  rung_.resize(buckets, EventLists::empty);
  const auto span = static_cast<std::uint64_t>((most_are_until(beyond_) - rung_start_).ps());
  const auto bits = std::bit_width(span), bits_of_buckets = std::bit_width(std::uint64_t{buckets} - 1);
  shift_ = static_cast<std::uint32_t>(bits > bits_of_buckets ? bits - bits_of_buckets : 0);
  std::size_t kept = 0;
  for (const Event& event : beyond_) {
    if (const auto bucket = bucket_of(event.time); bucket < buckets)
      lists_.prepend(rung_[bucket], event);
    else
      beyond_[kept++] = event;
  }
  beyond_.resize(kept);
}

}  // namespace orrery::pdes
