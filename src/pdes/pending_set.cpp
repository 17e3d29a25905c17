#include "orrery/pdes/pending_set.hpp"

#include <algorithm>
#include <utility>

namespace orrery::pdes {
namespace {

constexpr std::size_t few = 32;   // events that need no buckets
constexpr std::size_t many = 16;  // events that it is faster to sort than to put into the heap
constexpr std::size_t most_in_heap = 64;

constexpr auto earlier = [](const Event& a, const Event& b) { return before(a, b); };

void put_in_order(std::vector<Event>& events) {
  if (!std::ranges::is_sorted(events, earlier)) std::ranges::sort(events, earlier);
}

}  // namespace

/// Finds the places of the events of the pile among the near ones. If clients behave alike, these are many of one time,
/// and to sort them is faster than to put them into the heap one by one. If the heap has come to hold much of the set,
/// because the near time was chosen when few events waited, far ones such as time-outs among them, it is chosen anew.
void PendingSet::clear_pile() {
  const std::size_t left = run_.size() - next_;
  if (pile_.size() >= many && left / 4 <= pile_.size()) {
    put_in_order(pile_);
    if (left == 0) {
      run_.swap(pile_);
    } else {
      merged_.resize(left + pile_.size());
      std::merge(run_.data() + next_, run_.data() + run_.size(), pile_.begin(), pile_.end(), merged_.begin(), earlier);
      run_.swap(merged_);
    }
    next_ = 0;
  } else {
    for (const Event& event : pile_) heap_.push(event);
  }
  pile_.clear();
  if (heap_.size() > most_in_heap && heap_.size() > size_ / 4) {
    std::vector<Event> all;
    all.reserve(size_);
    for_each([&all](const Event& event) { all.push_back(event); });
    return refill(std::move(all));
  }
  find_first();
}

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
  pile_.clear();
  near_until_ = {};
  buckets_ = {};
  size_ = events.size();
  beyond_ = std::move(events);
  if (size_ > 0) approach();
  find_first();
}

}  // namespace orrery::pdes
