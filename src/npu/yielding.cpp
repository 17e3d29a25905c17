#include "yielding.hpp"

#include <algorithm>

namespace orrery::npu {

void Yielding::count(std::size_t set, Time from, Time to) {
  if (sets_[set].is_under_way && from < to) sets_[set].uses.push_back({from, to});
}

Time Yielding::take_owed(std::size_t set, Time since, Time now) {
  Set& its = sets_[set];
  Time owed = Time::zero();
  // An end at `now` itself may be handled after this one, and must not matter.
  std::erase_if(its.uses, [&](const Use& use) {
    if (use.to >= now) return false;
    if (use.to > since) owed = owed + (use.to - std::max(use.from, since));
    return true;
  });
  if (owed == Time::zero()) its = {};
  return owed;
}

}  // namespace orrery::npu
