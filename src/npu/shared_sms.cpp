#include "shared_sms.hpp"

#include <algorithm>

namespace orrery::npu {
namespace {

using Wide = unsigned __int128;

Wide wide(Time time) { return static_cast<Wide>(time.ps()); }

}  // namespace

Time SharedSms::finish_of(const Work& work) {
  const auto [longer, whole] = work.stretch;
  if (longer == 0) return Time::max();
  const Wide takes = (wide(work.rest) * longer + whole - 1) / whole;
  if (takes >= wide(Time::max())) return Time::max();
  return work.since + Time::from_ps(static_cast<std::int64_t>(takes));
}

Time SharedSms::begin(NodeId id, Time whole, Time now) {
  Work& work = under_way_.emplace_back(Work{id, now, whole, stretches_(id, held_)});
  return work.finish = finish_of(work);
}

std::vector<SharedSms::Node> SharedSms::hold(std::uint32_t held, Time now) {
  std::vector<Node> changed;
  if (held == held_) return changed;
  for (Work& work : under_way_) {
    const auto [longer, whole] = work.stretch;
    const Wide done = longer == 0 ? 0 : wide(now - work.since) * whole / longer;
    work.rest -= std::min(work.rest, Time::from_ps(static_cast<std::int64_t>(done)));
    work.since = now;
    work.stretch = stretches_(work.id, held);
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
