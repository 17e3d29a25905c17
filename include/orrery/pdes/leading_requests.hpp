#pragma once

#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "orrery/base/time.hpp"
#include "orrery/pdes/pending_set.hpp"

namespace orrery::pdes {

/// The times of those waiting requests that lead beyond this rank, or beyond a cell (Model::scope). As long as all of
/// them do, it keeps nothing. Requests are handled in the order of time, all of one time together, and none that comes
/// later is of that time.
class LeadingRequests {
 public:
  /// Takes note of a request that `pending`, which has all that wait, is given next. O(log requests).
  void note(const PendingSet& pending, Time time, bool leads_beyond) {
    if (!leads_beyond && !times_) {
      times_.emplace();
      pending.for_each([&](const Event& event) { times_->push(event.time); });
    }
    if (!times_) return;
    forget_handled(pending);
    if (leads_beyond) times_->push(time);
  }

  /// Returns the time of the earliest one of those that wait; max() if there is none. Amortised O(log requests).
  Time next(const PendingSet& pending) {
    if (!times_) return pending.time();
    forget_handled(pending);
    return times_->empty() ? Time::max() : times_->top();
  }

 private:
  void forget_handled(const PendingSet& pending) {
    while (!times_->empty() && times_->top() < pending.time()) times_->pop();
  }

  /// Some may have been handled. None before a request has come that does not lead away.
  std::optional<std::priority_queue<Time, std::vector<Time>, std::greater<>>> times_;
};

}  // namespace orrery::pdes
