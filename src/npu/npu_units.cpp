// Compute units of an NPU that collectives take from its compute nodes.

#include <algorithm>

#include "npu.hpp"
#include "orrery/collective/kind.hpp"

namespace orrery::npu {

using trace::NodeKind;

/// Says whether a node ends later than was known, and puts off its end.
bool Npu::is_put_off(NodeId id, Time now) {
  const NodeKind kind = execution_.node(id).kind;
  Time owed = Time::zero();
  if (kind == NodeKind::compute)
    owed = owed_to_compute(id, now);
  else if (kind == NodeKind::collective && membership(id).members > 1)
    owed = owed_to_collective(id, now);
  if (owed > Time::zero()) execution_.end_at(id, now, now + owed);
  return owed > Time::zero();
}

/// Returns how much later a collective ends because it yields. One that ends counts for those that do, and for compute
/// nodes.
Time Npu::owed_to_collective(NodeId id, Time now) {
  if (yielding_) {
    const Time since = execution_.running(id).last.time;
    const std::size_t tier = tier_of(*execution_.npu().program->graph, id);
    if (const Time owed = yielding_->take_owed(set_of(id), tier, id, since, now); owed > Time::zero()) return owed;
  }
  end_transfer(id, now);
  return Time::zero();
}

/// Counts what compute nodes lose to a collective that ends.
void Npu::end_transfer(NodeId id, Time now) {
  if (!units_.shared || holds_units(id)) return;
  const Time since = execution_.running(id).last.time;
  Time beside = Time::zero();
  for (const RunningNode& running : execution_.all_running())
    if (execution_.node(running.node).kind == NodeKind::compute && running.start < now)
      beside += now - std::max(running.start, std::min(since, now));
  units_.shared->end_transfer(since, beside, share_of(id));
}

/// Returns the share of the compute units that a collective takes.
double Npu::share_of(NodeId id) const {
  const compute::CollectivesShare& share = execution_.context().options.compute.collectives_share;
  if (!share.of_channels) return share.fixed;
  const trace::Node& node = execution_.node(id);
  return share.of(execution_.context().services.communicators.num_channels(
      membership(id), collective::kind_of(node.collective), Bytes(node.size)));
}

bool Npu::holds_units(NodeId id) const {
  if (!units_.held) return false;
  const trace::Node& node = execution_.node(id);
  return node.kind == NodeKind::collective && collective::is_of_experts(collective::kind_of(node.collective)) &&
         membership(id).members > 1;
}

/// Returns how much later a compute node ends because collectives took compute units.
Time Npu::owed_to_compute(NodeId id, Time now) {
  if (units_.held)
    if (const Time owed = units_.held->take_owed(id, now); owed > Time::zero()) return owed;
  if (!units_.shared) return Time::zero();
  const Time owed = units_.shared->take_owed();
  if (owed == Time::zero())
    units_.shared->count_compute(execution_.running(id).start, now);
  else if (units_.held)
    units_.held->begin_compute(id, now);  // it goes on
  return owed;
}

}  // namespace orrery::npu
