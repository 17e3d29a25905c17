#pragma once

#include <cstdint>
#include <map>

#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery::npu {

/// The compute units of an NPU that kernels of expert exchanges hold from their begin to their end, also while they
/// wait for other NPUs. Beside k exchanges, compute nodes go on at the speed 1 - k share. A node that would end asks
/// whether it has been blocked; if so, it ends later and asks again.
///
/// The NPU decides by itself, from begins and ends of its own, so results do not depend on ranks.
class HeldUnits {
 public:
  explicit HeldUnits(double share) : share_(share) {}

  void begin_exchange(Time now) { change(now, 1); }
  void end_exchange(Time now) { change(now, -1); }
  void begin_compute(NodeId id, Time now) { seen_[id] = held_until(now); }
  /// Returns how much later a compute node ends that would end now; zero: it ends, and is forgotten. A node that has
  /// not begun here is not blocked.
  Time take_owed(NodeId id, Time now);
  void serialize(Archive& archive) { archive(num_exchanges_, since_, held_, seen_); }

 private:
  void change(Time now, std::int64_t by) {
    held_ = held_until(now);
    since_ = now;
    num_exchanges_ += by;
  }
  /// Returns the time for which exchanges have held units, summed over them.
  Time held_until(Time now) const { return held_ + (now - since_) * num_exchanges_; }

  double share_;
  std::int64_t num_exchanges_ = 0;
  Time since_ = {};              ///< when the number changed last
  Time held_ = {};               ///< until then
  std::map<NodeId, Time> seen_;  ///< time for which each compute node under way has been blocked
};

}  // namespace orrery::npu
