#pragma once

#include <algorithm>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::npu {

/// The ends of the own nodes of an NPU that settles, which the kernel does not see yet.
class KeptEnds {
 public:
  /// Whether ends are kept; else they go to the kernel.
  bool is_on = false;

  void add(const pdes::Event& end) { ends_.push_back(end); }
  /// Returns the time of the earliest end, max() if there is none.
  Time next() const {
    Time next = Time::max();
    for (const pdes::Event& end : ends_) next = std::min(next, end.time);
    return next;
  }
  /// Forgets the earliest end, and returns its node. There must be one.
  NodeId take() {
    const auto first = std::ranges::min_element(ends_, pdes::before);
    const NodeId id(first->node);
    *first = ends_.back();
    ends_.pop_back();
    return id;
  }
  /// Calls give(event) for each end, and forgets them.
  template <class Give>
  void give_up(Give&& give) {
    for (const pdes::Event& end : ends_) give(end);
    ends_.clear();
  }

 private:
  std::vector<pdes::Event> ends_;
};

}  // namespace orrery::npu
