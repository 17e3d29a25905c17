#include "flow_arrows.hpp"

#include <algorithm>

namespace orrery::show {

using npu::TimelineRecord;
using trace::NodeKind;

bool FlowArrows::is_shown(std::uint32_t npu) const {
  return std::ranges::any_of(shown_, [&](const auto& range) { return range.first <= npu && npu <= range.last; });
}

void FlowArrows::count(const TimelineRecord& record) {
  if (record.kind != NodeKind::collective) return;
  Members& members = collectives_[{record.group, groups_[record.group]++}];
  ++members.number;
  members.last_arrival = std::max(members.last_arrival, record.start);
}

void FlowArrows::next_npu() {
  groups_.clear();
  channels_.clear();
}

std::optional<FlowArrows::End> FlowArrows::end_at(const TimelineRecord& record) {
  if (record.kind == NodeKind::collective) {
    Members& members = collectives_[{record.group, groups_[record.group]++}];
    if (members.number < 2) return {};
    if (members.id == 0) members.id = ++num_arrows_;
    return End{members.id, part_of(members), members.last_arrival};
  }
  if (record.peer == TimelineRecord::no_peer || !is_shown(record.peer)) return {};
  const bool is_send = record.kind == NodeKind::send;
  const std::uint32_t npu = record.npu.value();
  const Channel channel{is_send ? npu : record.peer, is_send ? record.peer : npu, record.tag};
  std::uint64_t& id = messages_[{channel, channels_[{is_send, channel}]++}];
  if (id == 0) id = ++num_arrows_;
  if (is_send) return End{id, End::Part::begins, record.start};
  // A viewer takes a slice as over at its end, so the arrow ends just before.
  return End{id, End::Part::ends, std::max(record.start, Time::from_ps(record.finish.ps() - 1))};
}

FlowArrows::End::Part FlowArrows::part_of(Members& members) {
  const std::uint64_t which = ++members.written;
  if (which == 1) return End::Part::begins;
  return which == members.number ? End::Part::ends : End::Part::passes;
}

}  // namespace orrery::show
