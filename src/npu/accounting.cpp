#include "accounting.hpp"

#include <algorithm>

namespace orrery::npu {
namespace {

/// Returns the position of a node in a trace, whose ids ascend.
NodeId position_of(std::uint64_t id, const NpuSpec& npu) {
  const std::vector<std::uint64_t>& ids = npu.trace->labels->ids;
  const auto found = std::ranges::lower_bound(ids, id - npu.trace->first_id);
  ensure(found != ids.end() && npu.trace->first_id + *found == id, "a saved node that the trace has not");
  return NodeId(static_cast<std::uint32_t>(found - ids.begin()));
}

}  // namespace

Accounting::Accounting(const NpuSpec& npu, const Options& options, std::optional<Overrun>& overrun)
    : npu_(npu), overrun_(overrun) {
  const Program& program = *npu.program;
  has_milestones_ = !program.graph->milestones.empty();
  if (!program.graph->tensors.sizes.empty())
    local_memory_ =
        std::make_unique<memory::LocalMemory>(npu.id, program.graph->tensors, program.lifetimes, options.room());
}

void Accounting::begin_iteration(Time now, bool keeps_timeline) {
  keeps_timeline_ = keeps_timeline;
  if (local_memory_) local_memory_->begin_iteration(now, keeps_timeline);
}

void Accounting::begin_operands(NodeId id, Bytes size, Time now) {
  operands_ += size;
  peak_operands_ = std::max(peak_operands_, operands_);
  if (operands_ > Bytes::most()) [[unlikely]]
    note_overrun(id, now, Overrun::Quantity::peak_memory);
}

/// Takes note of the end of a node, if it is the next milestone.
void Accounting::note_milestone(NodeId id, Time now) {
  const auto& marked = npu_.program->graph->milestones;
  if (milestones_.size() < marked.size() && marked[milestones_.size()] == id.value()) milestones_.push_back(now);
}

/// Keeps a node for the timeline.
void Accounting::keep(NodeId id, const trace::Node& node, const Service& service, Time now) {
  const std::uint32_t group = node.is_of_group() ? npu_.program->use_of_node(id) : TimelineRecord::no_group;
  auto& record = timeline_.emplace_back(TimelineRecord{.npu = npu_.id,
                                                       .group = group,
                                                       .start = service.start,
                                                       .finish = now,
                                                       .kind = node.kind,
                                                       .cause = service.cause,
                                                       .last = service.last});
  name(record, id);
  if (node.kind == trace::NodeKind::instant || node.kind == trace::NodeKind::cpu ||
      node.kind == trace::NodeKind::host || node.kind == trace::NodeKind::compute)
    return;
  record.bytes = node.size;
  if (node.is_of_group()) record.operation = static_cast<std::int8_t>(node.collective);
}

/// Writes what a record says of a node of this NPU's own trace: its id, name, peer and tag.
void Accounting::name(TimelineRecord& record, NodeId id) const {
  record.npu = npu_.id;
  record.node = npu_.trace->id_of(id);
  record.name = npu_.trace->labels->names[id.index()];
  const trace::Node& node = npu_.program->graph->nodes[id.index()];
  if (node.kind != trace::NodeKind::send && node.kind != trace::NodeKind::receive) return;
  record.peer = npu_.trace->peers[node.slot].value();
  record.tag = npu_.trace->tags[node.detail];
}

void Accounting::count_sent(NodeId id, Time start, Bytes sent) {
  sent_ += sent;
  if (sent_ > Bytes::most()) [[unlikely]]
    note_overrun(id, start, Overrun::Quantity::bytes_sent);
}

void Accounting::note_overrun(NodeId id, Time start, Overrun::Quantity quantity) {
  keep_earliest(overrun_, {start, npu_.id, id, quantity});
}

void Accounting::end_run(Time now) {
  if (now <= finish_) activity_.advance(now);  // an NPU that executes nothing is finished from time 0 on
  if (local_memory_) local_memory_->end(now);
}

void Accounting::stop(Time now) {
  finish_ = std::max({now, finish_, activity_.counted_to()});
  activity_.advance(finish_);
  if (local_memory_) local_memory_->advance(finish_);
}

void Accounting::serialize(Archive& archive) {
  archive(activity_, finish_, sent_, operands_, peak_operands_, keeps_timeline_, timeline_, milestones_);
  if (local_memory_) archive(*local_memory_);
}

void Accounting::take_over(const ResumedFrom* resumed_from) {
  const NpuSpec& of = resumed_from != nullptr ? resumed_from->npu : npu_;
  for (TimelineRecord& record : timeline_) {
    const NodeId id = position_of(record.node, of);
    name(record, id);
    if (resumed_from != nullptr) record.last.npu = resumed_from->awaited(id, record.last.npu);
  }
}

NpuRecord Accounting::record() const {
  NpuRecord record;
  record.npu = npu_.id;
  record.finish = finish_;
  activity_.fill(record);
  record.bytes_sent = sent_;
  record.peak_memory = peak_operands_;
  if (local_memory_) {
    record.peak_local_memory = local_memory_->peak();
    record.peak_local_memory_time = local_memory_->peak_time();
  }
  return record;
}

}  // namespace orrery::npu
