// How an NPU handles the events of one time one after the other (Options::one_by_one; docs/model.md, 2).

#include <algorithm>
#include <tuple>
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
      return {sent.time, sent.npu, true};
    }
    default:
      return {event.time, this->id()};
  }
  const Context& context = execution_.context();
  const trace::Node& node = execution_.node(id);
  const RunningNode& running = execution_.running(id);
  Time since = running.start;
  if (context.options.replay_only) return {since, this->id()};
  if (node.kind == NodeKind::send) since = running.last.time;
  if (node.is_access() && context.memory.num_servers() > 0)
    since = event.time - std::min(context.memory.access_time(Bytes(node.size)), event.time);
  if (node.kind == NodeKind::collective) since = event.time - std::min(context.last_step, event.time);
  return {since, this->id()};
}

/// Handles the events of this time one after the other, and begins nodes after each of them. What the NPU has in store
/// for itself comes together, in the place of what it has had in store for longest.
void Npu::apply_one_by_one(Time now) {
  struct Placed {
    EventPlace place;
    Time since;
    pdes::Event event;
  };
  std::vector<Placed> events;
  EventPlace first{now, id()};
  for (const pdes::Event& event : batch_) {
    const EventPlace place = place_of(event);
    if (is_in_store(execution_, event)) first.since = std::min(first.since, place.since);
    events.push_back({place, place.since, event});
  }
  batch_.clear();
  for (Placed& one : events)
    if (is_in_store(execution_, one.event)) one.place = first;
  std::ranges::sort(events, {}, [](const Placed& one) { return std::tuple(one.place, one.since, one.event.node); });
  for (const Placed& one : events) {
    place_ = one.place;
    apply(one.event);
    begin_ready(now);
  }
  place_ = {now, id()};  // what takes no time comes after all that
}

}  // namespace orrery::npu
