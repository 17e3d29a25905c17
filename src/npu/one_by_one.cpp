// How an NPU handles the events of one time one after the other (Options::one_by_one; docs/model.md, 2).

#include <algorithm>
#include <functional>
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
      return {sent.time, sent.npu, true};
    }
    default:  // the start, which comes before all that takes no time then
      return {event.time - Time::from_ns(1), this->id()};
  }
  const Context& context = execution_.context();
  const trace::Node& node = execution_.node(id);
  const RunningNode& running = execution_.running(id);
  Time since = running.start;
  if (context.options.replay_only) return {since, this->id()};
  if (node.kind == NodeKind::send) since = running.last.time;
  if (node.is_access() && context.memory.num_servers() > 0)
    since = event.time - std::min(context.memory.access_time(Bytes(node.size)), event.time);
  if (node.kind == NodeKind::collective) since = event.time - std::min(context.last_step(membership(id)), event.time);
  return {since, this->id()};
}

/// Returns the history of an event that is its own.
EventHistory Npu::take_history_of(const pdes::Event& event) {
  if (static_cast<EventKind>(event.kind) == EventKind::start) return EventHistory::first_of(id());
  EventHistory history = histories_of(execution_).take(event.order);
  const auto& links = execution_.context().services.links;
  if (!history.is_known() && links) history = links->take_history(event);
  return history.is_known() ? history : EventHistory::first_of(id()).next(event.time, 0);
}

/// Handles one event where events have histories. Returns false if it is to come again at this time, after all else
/// that the NPU has in store for it.
bool Npu::apply_in_order(const pdes::Event& event, Time now) {
  Histories& histories = histories_of(execution_);
  if (const Time until = histories.take_put_off(event.order); until > Time::zero()) {
    if (until == now) return false;
    pdes::Event later = execution_.make_event(until, pdes::Stage::client, lp(), EventKind::wake, event.node);
    later.detail = event.detail;
    histories.keep(later.order, histories.next(now));
    execution_.context().services.kernel.schedule(later);
    return true;
  }
  hold_queue(event);
  const bool goes_on = apply(event);
  if (goes_on) begin_ready(now);
  if (collectives_) end_on_links(collectives_->end_event(execution_, now), now);
  free_queue(now);
  return true;
}

/// Does the same as `apply_one_by_one` where events have histories. If it is not known whether an access ends at once,
/// what comes after that waits.
void Npu::apply_with_histories(Time now) {
  Histories& histories = histories_of(execution_);
  const bool is_new_time = instants_of(execution_).empty();
  std::vector<Ordered> events;
  EventHistory first;  // of what the NPU has in store since before this time
  for (const pdes::Event& event : *moment_) {
    if (tells_of_access(event)) continue;
    const EventHistory own = take_history_of(event);
    const bool in_store = is_in_store(execution_, event);
    if (in_store && (!first.is_known() || own < first)) first = own;
    events.push_back({own, own, event, in_store});
  }
  moment_->clear();
  for (Ordered& one : events)
    if (one.is_in_store) one.history = first;
  std::ranges::stable_sort(events, [](const Ordered& one, const Ordered& other) {
    return std::tie(one.history, one.own) < std::tie(other.history, other.own);
  });
  if (is_new_time || first.is_known()) histories.expect_store(first);
  bool goes_on = false;  // it is part of the event before
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Ordered one = events[i];
    if ((!one.is_in_store || !goes_on) && !begin_event(one.event, one.history, one.is_in_store, now))
      return put_off(std::span(events).subspan(i));
    goes_on = one.is_in_store;
    if (apply_in_order(one.event, now)) continue;
    const auto others = events.begin() + static_cast<std::ptrdiff_t>(i);
    events.insert(std::find_if_not(others, events.end(), std::mem_fn(&Ordered::is_in_store)), one);
  }
}

/// Takes in an event that says whether an access, which was awaited, ends at this time. Returns false for others.
bool Npu::tells_of_access(const pdes::Event& event) {
  const NodeId id(event.node);
  const bool goes_on = static_cast<EventKind>(event.kind) == EventKind::goes_on;
  if (!goes_on && !instants_of(execution_).holds(id)) return false;
  if (!goes_on && static_cast<EventKind>(event.kind) != EventKind::complete) return false;
  instants_of(execution_).tell(id, goes_on ? EventHistory() : histories_of(execution_).take(event.order));
  return true;
}

/// Keeps events for when it is known whether an access ends at this time.
void Npu::put_off(std::span<const Ordered> events) {
  for (const Ordered& one : events) {
    histories_of(execution_).keep(one.event.order, one.own);
    moment_->push_back(one.event);
  }
}

/// Ends what takes no time and comes before an event, and begins this event. Returns false if such an end is awaited.
bool Npu::begin_event(const pdes::Event& event, const EventHistory& history, bool is_in_store, Time now) {
  Histories& histories = histories_of(execution_);
  for (; histories.has_instant_before(history); begin_ready(now)) {
    if (histories.is_held_up()) return false;
    execution_.end_instant_nodes(now);
  }
  const auto kind = static_cast<EventKind>(event.kind);
  const bool is_from_elsewhere = kind == EventKind::arrived || kind == EventKind::received;
  if (is_in_store)
    histories.begin_store();
  else
    histories.begin(history, is_from_elsewhere ? Histories::of_receiver : 0);
  return true;
}

/// Handles the events of this time one after the other, and begins nodes after each of them. What the NPU has in store
/// for itself comes together, in the place of what it has had in store for longest.
void Npu::apply_one_by_one(Time now) {
  if (execution_.context().keeps_histories()) return apply_with_histories(now);
  if (moment_->size() == 1) {
    const pdes::Event event = moment_->front();
    moment_->clear();
    instants_of(execution_).set_in_store(is_in_store(execution_, event));
    apply(event);
    return begin_ready(now);
  }
  struct Placed {
    EventPlace place;
    Time since;
    pdes::Event event;
  };
  std::vector<Placed> events;
  EventPlace first{now, id()};
  for (const pdes::Event& event : *moment_) {
    const EventPlace place = place_of(event);
    if (is_in_store(execution_, event)) first = std::min(first, place);
    events.push_back({place, place.since, event});
  }
  moment_->clear();
  for (Placed& one : events)
    if (is_in_store(execution_, one.event)) one.place = first;
  std::ranges::sort(events, {}, [](const Placed& one) { return std::tuple(one.place, one.since, one.event.node); });
  for (const Placed& one : events) {
    if (!is_in_store(execution_, one.event))
      for (; instants_of(execution_).is_in_event(); begin_ready(now)) execution_.end_instant_nodes(now);
    instants_of(execution_).set_in_store(is_in_store(execution_, one.event));
    apply(one.event);
    begin_ready(now);
  }
}

}  // namespace orrery::npu
