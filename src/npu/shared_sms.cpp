#include "shared_sms.hpp"

#include <algorithm>

namespace orrery::npu {
namespace {

using Wide = unsigned __int128;

Wide wide(Time time) { return static_cast<Wide>(time.ps()); }

}  // namespace

Time SharedSms::finish_of(const Work& work) const {
  if (held_ >= sms_) return Time::max();
  const Wide left = sms_ - held_, takes = (wide(work.rest) * sms_ + left - 1) / left;
  if (takes >= wide(Time::max())) return Time::max();
  return work.since + Time::from_ps(static_cast<std::int64_t>(takes));
}

Time SharedSms::begin(NodeId id, Time whole, Time now) {
  Work& work = under_way_.emplace_back(Work{id, now, whole});
  return work.finish = finish_of(work);
}

std::vector<SharedSms::Node> SharedSms::hold(std::uint32_t held, Time now) {
  held = std::min(held, sms_);
  std::vector<Node> changed;
  if (held == held_) return changed;
  for (Work& work : under_way_) {
    const Wide done = wide(now - work.since) * (sms_ - held_) / sms_;
    work.rest -= std::min(work.rest, Time::from_ps(static_cast<std::int64_t>(done)));
    work.since = now;
  }
  held_ = held;
  for (Work& work : under_way_) {
    if (work.rest == Time::zero()) continue;  // it ends now
    const Time finish = finish_of(work);
    if (finish == work.finish) continue;
    work.finish = finish;
    changed.push_back({work.id, finish});
  }
  return changed;
}

bool SharedSms::end(NodeId id, Time now) {
  const auto found = std::ranges::find(under_way_, id, &Work::id);
  if (found == under_way_.end() || found->finish != now) return false;
  under_way_.erase(found);
  return true;
}

}  // namespace orrery::npu
