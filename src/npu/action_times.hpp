#pragma once

#include <algorithm>
#include <cstdint>

#include "lookahead.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery::npu {

/// Least times, over a set of receives, to the actions that other ranks, or other cells, may notice. They are bounds
/// that never grow while the set has members; when it becomes empty they are exact again: max().
class ActionTimes {
 public:
  /// Adds a receive after whose completion, which is at `time` or later, `lookahead` sees the actions.
  void add(Time time, const Lookahead& lookahead, NodeId receive) {
    ++count_;
    sends_ = std::min(sends_, time + lookahead.sends.tail(receive));
    calls_ = std::min(calls_, time + lookahead.calls.tail(receive));
    if (lookahead.relays) relays_ = std::min(relays_, time + lookahead.relays->tail(receive));
    if (lookahead.leaves) leaves_ = std::min(leaves_, time + lookahead.leaves->tail(receive));
  }
  void remove() {
    ensure(count_ > 0, "a receive ends that was not counted");
    if (--count_ == 0) *this = {};
  }

  Time sends() const { return sends_; }
  Time calls() const { return calls_; }
  Time relays() const { return relays_; }
  Time leaves() const { return leaves_; }

 private:
  std::uint32_t count_ = 0;
  Time sends_ = Time::max(), calls_ = Time::max(), relays_ = Time::max(), leaves_ = Time::max();
};

}  // namespace orrery::npu
