#include "shared_units.hpp"

#include <algorithm>
#include <ranges>

namespace orrery::npu {

void SharedUnits::end_transfer(Time since, Time running, double share) {
  Time beside = running;
  for (const Work& work : done_ | std::views::reverse) {
    if (work.to <= since) break;
    beside += work.to - std::max(work.from, since);
  }
  owed_ += Time::from_ps(static_cast<std::int64_t>(static_cast<double>(beside.ps()) * share));
  if (--num_transfers_ == 0) done_.clear();
}

void SharedUnits::count_compute(Time from, Time to) {
  if (num_transfers_ > 0) done_.push_back({from, to});
}

}  // namespace orrery::npu
