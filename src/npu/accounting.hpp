#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "activity.hpp"
#include "orrery/base/overrun.hpp"
#include "orrery/memory/local_memory.hpp"
#include "orrery/npu/options.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/npu/resumed_from.hpp"
#include "orrery/npu/spec.hpp"

namespace orrery::npu {

/// The time that a node is in service.
struct Service {
  Time start;
  Cause cause = Cause::other;  ///< cause of a collective, a send or a receive
  LastArrival last = {};       ///< for whom it waits
};

/// What is counted and measured of an NPU: how its time is spent, bytes, tensors in its local memory, its timeline.
class Accounting {
 public:
  /// `overrun` becomes this NPU's if it has an earlier one.
  Accounting(const NpuSpec& npu, const Options& options, std::optional<Overrun>& overrun);

  /// Begins an iteration of the trace, of which the timeline keeps the nodes if `keeps_timeline`.
  void begin_iteration(Time now, bool keeps_timeline);
  /// Begins the service of a node.
  void begin(NodeId id, const trace::Node& node, Time now) {
    if (local_memory_) local_memory_->start(id, now);
    activity_.begin(work_of(node.kind), now);
    if (node.kind == trace::NodeKind::compute) begin_operands(id, Bytes(node.size), now);
  }
  /// Ends the service of a node.
  void end(const trace::Node& node, const Service& service, Time now) {
    const Work work = work_of(node.kind);
    activity_.end(work, now);
    if (service.start < now && (work == Work::communication || work == Work::receive))
      activity_.explain(service.cause, service.last.time);
    if (node.kind == trace::NodeKind::compute) operands_ = operands_ - Bytes(node.size);
  }
  /// Counts a node as done whose service was this one, or that takes no service.
  void finish(NodeId id, const trace::Node& node, const Service& service, Time now) {
    finish_ = now;
    if (local_memory_) {
      if (node.kind == trace::NodeKind::instant) local_memory_->start(id, now);
      local_memory_->complete(id, now);
    }
    if (keeps_timeline_) keep(id, node, service, now);
    if (has_milestones_) [[unlikely]]
      note_milestone(id, now);
  }
  /// Counts bytes that a node in service since `start` sends.
  void count_sent(NodeId id, Time start, Bytes sent);
  /// Records that a node which has been in service since `start` leaves the range of a quantity.
  void note_overrun(NodeId id, Time start, Overrun::Quantity quantity);

  /// Counts up to `now`, at the end of the last node.
  void end_run(Time now);
  /// Counts up to `now`, where the run ends before this NPU is done.
  void stop(Time now);

  /// Writes the state, or reads it. `take_over` must follow then.
  void serialize(Archive& archive);
  /// Makes records that have been read this NPU's own: their names have the numbers of another rank, and with a
  /// `resumed_from` they name its nodes and peers. O(records log nodes).
  void take_over(const ResumedFrom* resumed_from);

  /// Returns the record but for the number of nodes completed.
  NpuRecord record() const;
  /// Returns the nodes of recorded iterations, in the order of completion. TimelineRecord::group is an index into
  /// NpuSpec::groups.
  const std::vector<TimelineRecord>& timeline() const { return timeline_; }
  /// Returns when the nodes of Graph::milestones ended, in the first iteration.
  const std::vector<Time>& milestones() const { return milestones_; }
  /// Returns null if no node lists a tensor.
  const memory::LocalMemory* local_memory() const { return local_memory_.get(); }

 private:
  void begin_operands(NodeId id, Bytes size, Time now);
  void note_milestone(NodeId id, Time now);
  void keep(NodeId id, const trace::Node& node, const Service& service, Time now);
  void name(TimelineRecord& record, NodeId id) const;

  const NpuSpec& npu_;
  std::optional<Overrun>& overrun_;  // of the rank
  Activity activity_;
  Time finish_;  // of the last node that completed
  Bytes sent_, operands_, peak_operands_;
  std::unique_ptr<memory::LocalMemory> local_memory_;
  bool keeps_timeline_ = false, has_milestones_ = false;
  std::vector<TimelineRecord> timeline_;
  std::vector<Time> milestones_;
};

}  // namespace orrery::npu
