#include "execution.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::npu {

using trace::NodeKind;

Execution::Execution(const NpuSpec& npu, const Lookahead& lookahead, Context& context, std::optional<Overrun>& overrun)
    : NpuContext(npu, lookahead, context),
      schedule_(*npu.program, context.options, context.options.iterations_of(npu.id),
                {npu, context.streams, context.streams.tables.of(npu, context.streams)}, context.scratch.released),
      accounting_(npu, context.options, overrun),
      order_(make_event_order(*this)) {}

void Execution::begin_iteration(Time now) {
  schedule_.begin_iteration();
  accounting_.begin_iteration(now, context_.options.timeline && schedule_.is_recorded());
  schedule_.make_first_ready(now, [&](NodeId done) { accounting_.finish(done, node(done), {now}, now); });
}

void Execution::begin(NodeId id, std::uint16_t resource, Time now) {
  accounting_.begin(id, node(id), now);
  if (node(id).kind == NodeKind::receive && !context_.options.replay_only) return;
  schedule_.resources().occupy(resource);
  running_.push_back({id, now, Time::max(), resource});
}

RunningNode& Execution::running(NodeId id) {
  const auto found = std::ranges::find(running_, id, &RunningNode::node);
  ensure(found != running_.end(), "a node completes that is not running");
  return *found;
}

void Execution::end_at(NodeId id, Time now, Time finish, const EventPlace* given) {
  EventPlace place = given != nullptr ? *given : order_->places().next(now);
  RunningNode& running = this->running(id);
  running.finish = finish;
  if (finish == Time::max()) [[unlikely]]
    return accounting_.note_overrun(id, running.start, Overrun::Quantity::time);
  if (finish == now) return order_->add_end(id, place);
  const pdes::Event end = make_event(finish, pdes::Stage::client, npu_.lp(), EventKind::complete, id.value());
  order_->places().keep(end, std::move(place));
  if (context_.kept_ends.is_on)
    context_.kept_ends.add(end);
  else
    context_.services.kernel.schedule(end);
}

void Execution::end_receive_at_once(NodeId id, Time now, const Meeting& meeting) {
  running_.push_back({id, now, now, ResourceMap::unlimited});
  order_->add_receive_end(id, meeting);
}

void Execution::complete(NodeId id, Time now) {
  RunningNode& entry = running(id);
  const RunningNode running = entry;
  entry = running_.back();
  running_.pop_back();
  schedule_.resources().release(running.resource);
  end(id, {running.start, cause_of(id), running.last}, now);
}

void Execution::complete_receive(NodeId id, Time posted, const LastArrival& last, Time now) {
  end(id, {posted, cause_of(id), last}, now);
}

/// Returns what an NPU waits for that waits for this node; `other` for nodes that are no communication.
Cause Execution::cause_of(NodeId id) const {
  const trace::Node& its = node(id);
  if (!its.is_of_group()) return npu::cause_of(its, Cause::other);
  return npu::cause_of(its, context_.groups[npu_.groups[npu_.program->use_of_node(id)].index()].cause);
}

/// Ends the service of a node, and counts it and the instant nodes that follow as done.
void Execution::end(NodeId id, const Service& service, Time now) {
  accounting_.end(node(id), service, now);
  schedule_.complete(
      id, now, [&](NodeId done) { accounting_.finish(done, node(done), done == id ? service : Service{now}, now); });
}

bool Execution::end_and_restart(Time now) {
  const bool any = order_->has_ends();
  if (order_->awaits_answer()) return false;
  if (any) {
    auto& over = context_.scratch.over;
    order_->take_ends(over);
    for (const NodeId id : over) complete(id, now);
    over.clear();
  }
  if (!schedule_.may_begin_iteration()) return any;
  begin_iteration(now);
  return true;
}

pdes::Event Execution::make_event(Time time, pdes::Stage stage, LpId target, EventKind kind, std::uint32_t node,
                                  std::uint64_t detail) {
  pdes::Event event = pdes::Event::make(time, stage, npu_.lp(), sequence_++, target);
  event.kind = static_cast<std::uint16_t>(kind);
  event.node = node;
  event.detail = detail;
  return event;
}

void take_over(Execution& npu, const ResumedFrom* resumed_from) {
  npu.accounting_.take_over(resumed_from);
  if (resumed_from == nullptr || !npu.context_.options.timeline) return;
  for (RunningNode& running : npu.running_) running.last.npu = resumed_from->awaited(running.node, running.last.npu);
}

}  // namespace orrery::npu
