#include "yielding.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::npu {

void Lane::count(Time from, Time to) {
  if ((num_under_way_ == 0 && ended_.empty()) || from >= to) return;
  if (!latest_.empty() && latest_.front().to < to) merge_latest();
  latest_.push_back({from, to});
}

void Lane::merge_latest() {
  for (Use use : latest_) {
    while (!uses_.empty() && uses_.back().to >= use.from) {
      use.from = std::min(use.from, uses_.back().from);
      uses_.pop_back();
    }
    uses_.push_back(use);
  }
  latest_.clear();
}

/// Returns when work is done if that before it is done at `before`.
Time Lane::end_of(const Work& work, Time before) const {
  Time at = std::max(work.since, before), left = work.length;
  for (auto use = std::ranges::upper_bound(uses_, at, {}, &Use::to); use != uses_.end(); ++use) {
    if (use->from > at) {
      if (left <= use->from - at) break;
      left = left - (use->from - at);
    }
    at = use->to;
  }
  return at + left;
}

Time Lane::owed(NodeId id, Time since, Time now) {
  auto own = std::ranges::find(under_way_, id, &Work::id);
  if (own == under_way_.end()) own = under_way_.insert(own, {id, since, now - since});
  // An end at `now` itself may be handled after this one, and must not matter.
  if (!latest_.empty() && latest_.front().to < now) merge_latest();
  Time end = Time::zero();
  for (const Work& work : ended_) end = end_of(work, end);
  end = end_of(*own, end);
  return end > now ? end - now : Time::zero();
}

void Lane::end(NodeId id, Time horizon) {
  const auto own = std::ranges::find(under_way_, id, &Work::id);
  ended_.push_back(*own);
  under_way_.erase(own);
  --num_under_way_;
  for (const Use& use : latest_) horizon = std::min(horizon, use.from);
  Time settled = Time::zero();
  auto work = ended_.begin();
  for (; work != ended_.end(); ++work) {
    const Time end = end_of(*work, settled);
    if (end > horizon) break;
    settled = end;
  }
  ended_.erase(ended_.begin(), work);
  if (!ended_.empty()) settled = ended_.front().since = std::max(ended_.front().since, settled);
  if (num_under_way_ > 0) return;
  std::erase_if(uses_, [&](const Use& use) { return ended_.empty() || use.to <= settled; });
  if (ended_.empty()) latest_.clear();
}

void Yielding::begin(std::size_t set, std::size_t tier, NodeId id, Time now) {
  sets_[set].under_way.push_back({id, tier, now});
  if (tier == 0) return;
  auto& lane = sets_[set].lanes[tier - 1];
  if (!lane) lane = std::make_unique<Lane>();
  lane->begin();
}

Time Yielding::take_owed(std::size_t set, std::size_t tier, NodeId id, Time since, Time now) {
  Set& its = sets_[set];
  if (tier > 0) {
    ensure(its.lanes[tier - 1] != nullptr, "a collective yields that has not begun");
    Lane& lane = *its.lanes[tier - 1];
    if (const Time owed = lane.owed(id, since, now); owed > Time::zero()) return owed;
    Time horizon = Time::max();
    for (const UnderWay& other : its.under_way)
      if (other.tier < tier) horizon = std::min(horizon, other.begun);
    lane.end(id, horizon);
  }
  std::erase_if(its.under_way, [&](const UnderWay& one) { return one.id == id; });
  for (std::size_t above = tier + 1; above < num_tiers; ++above)
    if (auto& lane = its.lanes[above - 1]) lane->count(since, now);
  return Time::zero();
}

}  // namespace orrery::npu
