// How an NPU handles the events of one time one after the other (Options::one_by_one; docs/model.md, 2).

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "npu.hpp"
#include "orrery/base/error.hpp"

namespace orrery::npu {
namespace {

using trace::NodeKind;

/// Returns whether an NPU has an event in store for itself, so that it is no message that arrives.
bool is_in_store(const Execution& npu, const pdes::Event& event) {
  return event.kind == static_cast<std::uint16_t>(EventKind::complete) &&
         npu.node(NodeId(event.node)).kind != NodeKind::send;
}

}  // namespace

/// Returns the place of an event if it comes alone.
EventPlace Npu::place_of(const pdes::Event& event) {
  const NodeId id(event.node);
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::complete:
      break;
    case EventKind::received:
    case EventKind::cleared: {
      const LastArrival sent = messaging_->departure_of(execution_, event);
      return {sent.time, sent.time, sent.npu, true};
    }
    default: {  // the start, which comes before all that takes no time then
      const Time before = event.time - Time::from_ns(1);
      return {before, before, this->id()};
    }
  }
  const Context& context = execution_.context();
  const trace::Node& node = execution_.node(id);
  const RunningNode& running = execution_.running(id);
  Time since = running.start;
  if (context.options.replay_only) return {since, since, this->id()};
  if (node.kind == NodeKind::send) since = running.last.time;
  if (node.is_access() && context.memory.num_servers() > 0)
    since = event.time - std::min(context.memory.access_time(Bytes(node.size)), event.time);
  if (node.kind == NodeKind::collective)
    since = event.time - std::min(context.last_step(membership(id).members), event.time);
  const EventPlace place{since, since, this->id()};
  if (!keeps_places() || node.kind == NodeKind::send) return place;
  if (!node.is_access()) return take_place_of_end(id, place);
  return context.memory.kind()->has_hierarchy ? place : EventPlace::unpacked(since, event.detail);
}

/// Returns whether it matters where the ends of nodes stand among the events of other NPUs.
bool Npu::keeps_places() const {
  const Context& context = execution_.context();
  return moment_ && context.memory.orders_requests() && context.memory.num_servers() > 0 &&
         !context.options.replay_only && !context.options.keeps_histories();
}

/// Takes note of the place of the end of a node that is under way.
void Npu::keep_place_of_end(NodeId id, const EventPlace& place) {
  const auto known = std::ranges::find(moment_->ends, id, &std::pair<NodeId, EventPlace>::first);
  if (known == moment_->ends.end())
    moment_->ends.emplace_back(id, place);
  else
    known->second = place;
}

EventPlace Npu::take_place_of_end(NodeId id, const EventPlace& otherwise) {
  const auto known = std::ranges::find(moment_->ends, id, &std::pair<NodeId, EventPlace>::first);
  if (known == moment_->ends.end()) return otherwise;
  const EventPlace place = known->second;
  *known = moment_->ends.back();
  moment_->ends.pop_back();
  return place;
}

/// Returns the history of an event of a network that simulates every link.
EventHistory Npu::history_of(const pdes::Event& event) {
  const auto kind = static_cast<EventKind>(event.kind);
  if (kind == EventKind::arrived) return execution_.context().services.links->history_of(event);
  if (kind == EventKind::sent) return {{Time::from_ps(static_cast<std::int64_t>(event.detail))}, id()};
  return histories_of(execution_).in_store(event.time).value_or(EventHistory{{event.time}, id()});
}

/// Does the same where events have histories.
void Npu::apply_with_histories(Time now) {
  Histories& histories = histories_of(execution_);
  const auto apply_one = [&](const EventHistory& history, const pdes::Event& event) {
    histories.set_at_hand(history);
    moment_->place = {history.since[0], history.since[1], history.root};
    if (apply(event)) begin_ready(now);
  };
  if (moment_->events.size() == 1) {
    const pdes::Event event = moment_->events.front();
    moment_->events.clear();
    apply_one(history_of(event), event);
  } else {
    std::vector<std::pair<EventHistory, pdes::Event>> events;
    for (const pdes::Event& event : moment_->events) events.emplace_back(history_of(event), event);
    moment_->events.clear();
    std::ranges::stable_sort(events, {}, [](const auto& one) { return one.first; });
    for (const auto& [history, event] : events) apply_one(history, event);
  }
  histories.forget(now);
  histories.set_at_hand(histories.at_hand().next(now));  // what takes no time comes after all that
}

/// Handles the only event of this time.
void Npu::apply_alone(Time now) {
  const pdes::Event event = moment_->events.front();
  moment_->events.clear();
  if (execution_.context().memory.orders_requests()) moment_->place = place_of(event);
  apply(event);
  begin_ready(now);
  moment_->place = moment_->place.next(now);  // what takes no time comes after that
}

/// Handles the events of this time one after the other, and begins nodes after each of them. What the NPU has in store
/// for itself comes together, in the place of what it has had in store for longest.
void Npu::apply_one_by_one(Time now) {
  if (execution_.context().options.keeps_histories()) return apply_with_histories(now);
  if (moment_->events.size() == 1) return apply_alone(now);
  struct Placed {
    EventPlace place;
    Time since;
    pdes::Event event;
  };
  std::vector<Placed> events;
  EventPlace first{now, now, id()};
  for (const pdes::Event& event : moment_->events) {
    const EventPlace place = place_of(event);
    if (is_in_store(execution_, event)) first = std::min(first, place);
    events.push_back({place, place.since, event});
  }
  moment_->events.clear();
  for (Placed& one : events)
    if (is_in_store(execution_, one.event)) one.place = first;
  std::ranges::sort(events, {}, [](const Placed& one) { return std::tuple(one.place, one.since, one.event.node); });
  for (const Placed& one : events) {
    moment_->place = one.place;
    apply(one.event);
    begin_ready(now);
  }
  moment_->place = moment_->place.next(now);  // what takes no time comes after all that
}

}  // namespace orrery::npu
