#include "orrery/pdes/pending_set.hpp"

#include <algorithm>
#include <utility>

namespace orrery::pdes {
namespace {

constexpr std::size_t few = 32;  // events that need no buckets

void put_in_order(std::vector<Event>& events) {
  const auto earlier = [](const Event& a, const Event& b) { return before(a, b); };
  if (!std::ranges::is_sorted(events, earlier)) std::ranges::sort(events, earlier);
}

}  // namespace

/// Makes the earliest events near. There must be far events, and no near ones.
void PendingSet::approach() {
  run_.clear();
  next_ = 0;
  if (!buckets_.take_next(run_)) {
    if (beyond_.size() <= few) {
      run_.swap(beyond_);
      put_in_order(run_);
      near_until_ = run_.back().time + Time::from_ps(1);
      return;
    }
    buckets_.build(beyond_);
    buckets_.take_next(run_);
  }
  put_in_order(run_);
  near_until_ = buckets_.end();
}

/// Puts other events in the place of all.
void PendingSet::refill(std::vector<Event> events) {
  run_.clear();
  next_ = 0;
  heap_ = {};
  heap_is_first_ = false;
  near_until_ = {};
  buckets_ = {};
  size_ = events.size();
  beyond_ = std::move(events);
  if (size_ > 0) approach();
}

}  // namespace orrery::pdes
