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
  if (event.kind == static_cast<std::uint16_t>(EventKind::wake)) return true;
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

/// Returns the place of the event at hand.
EventPlace Npu::present_place() {
  if (!moment_) return {};
  if (!execution_.context().options.keeps_histories()) return moment_->place;
  const EventHistory& history = histories_of(execution_).at_hand();
  return {history.since(), history.before(), history.root()};
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

/// Returns the history of an event that is its own.
EventHistory Npu::take_history_of(const pdes::Event& event) {
  if (static_cast<EventKind>(event.kind) == EventKind::start) return EventHistory::first_of(id());
  EventHistory history = histories_of(execution_).take(event.order);
  const auto& links = execution_.context().services.links;
  if (!history.is_known() && links) history = links->take_history(event);
  return history.is_known() ? history : EventHistory::first_of(id()).next(event.time, 0);
}

/// Handles one event where events have histories.
void Npu::apply_in_order(const pdes::Event& event, Time now) {
  Histories& histories = histories_of(execution_);
  if (const Time until = histories.take_put_off(event.order); until > Time::zero()) {
    pdes::Event later = execution_.make_event(until, pdes::Stage::client, lp(), EventKind::wake, event.node);
    later.detail = event.detail;
    histories.keep(later.order, histories.next(now));
    return execution_.context().services.kernel.schedule(later);
  }
  if (apply(event)) begin_ready(now);
}

/// Does the same as `apply_one_by_one` where events have histories.
void Npu::apply_with_histories(Time now) {
  struct Ordered {
    EventHistory history, own;
    pdes::Event event;
    bool is_in_store = false;
  };
  std::vector<Ordered> events;
  EventHistory first;  // of what the NPU has in store
  for (const pdes::Event& event : moment_->events) {
    const EventHistory own = take_history_of(event);
    const bool in_store = is_in_store(execution_, event);
    if (in_store && (!first.is_known() || own < first)) first = own;
    events.push_back({own, own, event, in_store});
  }
  moment_->events.clear();
  for (Ordered& one : events)
    if (one.is_in_store) one.history = first;
  std::ranges::stable_sort(events, [](const Ordered& one, const Ordered& other) {
    return std::tie(one.history, one.own) < std::tie(other.history, other.own);
  });
  Histories& histories = histories_of(execution_);
  bool goes_on = false;  // it is part of the event before
  for (const Ordered& one : events) {
    const bool is_from_elsewhere = static_cast<EventKind>(one.event.kind) == EventKind::arrived;
    if (!one.is_in_store || !goes_on) histories.begin(one.history, is_from_elsewhere ? Histories::of_receiver : 0);
    goes_on = one.is_in_store;
    apply_in_order(one.event, now);
  }
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
