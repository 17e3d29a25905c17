#include "held_units.hpp"

namespace orrery::npu {

Time HeldUnits::take_owed(NodeId id, Time now) {
  const auto found = seen_.find(id);
  if (found == seen_.end()) return Time::zero();  // its duration is recorded
  const Time held = held_until(now);
  const double beside = static_cast<double>((held - found->second).ps());
  const Time owed = Time::from_ps(static_cast<std::int64_t>(beside * share_));
  if (owed == Time::zero())
    seen_.erase(found);
  else
    found->second = held;
  return owed;
}

}  // namespace orrery::npu
