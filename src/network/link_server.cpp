#include "orrery/network/link_server.hpp"

#include <algorithm>

namespace orrery::network {

Time LinkServer::serve(Time now, Time holds, Bytes size) {
  const Time start = std::max(now, free_);
  if (start + holds == Time::max()) return Time::max();
  free_ = start + holds;
  ++statistics_.messages;
  statistics_.bytes += size;
  statistics_.busy += holds;
  wait(now, start);
  return start;
}

void LinkServer::wait(Time now, Time until) {
  while (first_ < starts_.size() && starts_[first_] <= now) ++first_;
  if (first_ * std::size_t{2} >= starts_.size()) {
    starts_.erase(starts_.begin(), starts_.begin() + first_);
    first_ = 0;
  }
  if (until == now) return;
  statistics_.queueing += until - now;
  starts_.push_back(until);
  statistics_.peak_queue = std::max(statistics_.peak_queue, static_cast<std::uint32_t>(starts_.size() - first_));
}

bool LinkServer::serve_at_once(Time now, Time holds, Bytes size) {
  free_ = std::max(now, free_) + holds;
  ++statistics_.messages;
  statistics_.bytes += size;
  statistics_.busy += holds;
  return free_ < Time::max();
}

}  // namespace orrery::network
