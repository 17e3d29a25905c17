// ASTRA-sim's order of simultaneous events (Options::one_by_one; docs/model.md, 2): an NPU handles the events of one
// time one after the other, and begins nodes after each of them.

#include <algorithm>
#include <compare>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "execution.hpp"
#include "histories.hpp"
#include "orrery/base/error.hpp"

namespace orrery::npu {
namespace {

using trace::NodeKind;

/// Room for the numbers of what an NPU schedules when it joins a collective (EventPlace::next).
constexpr std::uint32_t events_of_join = 1U << 14U;

/// Keeps the events of one time until the NPU has got all of them.
class AstraOrder : public EventOrder {
 public:
  AstraOrder(Execution& npu, EventPlaces* places) : EventOrder(places), npu_(npu) {}

  std::span<const pdes::Event> kept() const override { return has_one_ ? std::span(&one_, 1) : std::span(kept_); }
  void serialize_kept(Archive& archive) override {
    if (std::exchange(has_one_, false)) kept_.push_back(one_);
    archive(kept_);
  }

 protected:
  Execution& npu() const { return npu_; }
  void keep_again(const pdes::Event& event) {
    if (!has_one_ && kept_.empty()) {
      one_ = event;
      has_one_ = true;
      return;
    }
    if (std::exchange(has_one_, false)) kept_.push_back(one_);
    kept_.push_back(event);
  }
  NodeId take_end(std::size_t index) {
    const NodeId id = ends()[index];
    ends().erase(ends().begin() + static_cast<std::ptrdiff_t>(index));
    return id;
  }
  /// Returns whether the event is one that the NPU has pending for itself, so that it is no message that arrives.
  bool is_in_store(const pdes::Event& event) const {
    if (event.kind == static_cast<std::uint16_t>(EventKind::wake)) return true;
    return event.kind == static_cast<std::uint16_t>(EventKind::complete) &&
           npu_.node(NodeId(event.node)).kind != NodeKind::send;
  }

 private:
  virtual void handle_all(EventHandler& handler, std::span<const pdes::Event> events, Time now) = 0;

  bool keep_event(const pdes::Event& event) override {
    keep_again(event);
    return true;
  }
  void handle_in_order(EventHandler& handler, Time now) override {
    if (std::exchange(has_one_, false)) {
      const pdes::Event one = one_;
      return handle_all(handler, std::span(&one, 1), now);
    }
    if (kept_.empty()) return;
    std::vector<pdes::Event> all;
    all.swap(kept_);
    handle_all(handler, all, now);
    if (!kept_.empty()) return;
    all.clear();
    kept_.swap(all);  // for its memory
  }

  Execution& npu_;
  bool has_one_ = false;
  pdes::Event one_;                // the only event that is kept, which mostly is the only one of its time
  std::vector<pdes::Event> kept_;  // more
};

/// The order where only that of the events on one NPU matters. It follows from the times at which it became known that
/// events come, and from the NPUs that brought them about.
class LocalOrder final : public AstraOrder {
 public:
  explicit LocalOrder(Execution& npu) : AstraOrder(npu, nullptr) {}

  /// Receives end in events of their own, and other nodes in the event of what the NPU has pending for itself.
  void take_ends(std::vector<NodeId>& over) override {
    std::size_t index = 0;
    if (is_in_event())
      index = first_stored();
    else
      is_in_store_ = is_stored(ends().front());
    over.push_back(take_end(index));
  }

 private:
  /// The place of an event on its NPU. The event that has been known to come for longest is the first; then the one
  /// that the NPU with the lowest number brought about, and that NPU's own before another's.
  struct Place {
    Time since;                 ///< time at which it became known that the event comes
    NpuId origin;               ///< NPU that brought it about
    bool is_elsewhere = false;  ///< whether a message to another NPU brought it about

    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Placed {
    Place place;
    Time since;
    pdes::Event event;
  };

  void handle_all(EventHandler& handler, std::span<const pdes::Event> all, Time now) override {
    if (all.size() == 1) {
      is_in_store_ = is_in_store(all.front());
      handler.handle_now(all.front());
      return handler.begin_ready(now);
    }
    for (const Placed& one : in_order(handler, all, now)) {
      if (!is_in_store(one.event))
        for (; is_in_event(); handler.begin_ready(now)) npu().end_instant_nodes(now);
      is_in_store_ = is_in_store(one.event);
      handler.handle_now(one.event);
      handler.begin_ready(now);
    }
  }

  /// Sorts events. What the NPU has pending for itself comes together, in the place of what has been pending for
  /// longest.
  std::vector<Placed> in_order(const EventHandler& handler, std::span<const pdes::Event> all, Time now) const {
    std::vector<Placed> events;
    Place first{now, npu().npu().id};
    for (const pdes::Event& event : all) {
      const Place place = place_of(handler, event);
      if (is_in_store(event)) first = std::min(first, place);
      events.push_back({place, place.since, event});
    }
    for (Placed& one : events)
      if (is_in_store(one.event)) one.place = first;
    std::ranges::sort(events, {}, [](const Placed& one) { return std::tuple(one.place, one.since, one.event.node); });
    return events;
  }

  /// Returns the place of an event if it comes alone.
  Place place_of(const EventHandler& handler, const pdes::Event& event) const {
    const NpuId self = npu().npu().id;
    const NodeId id(event.node);
    switch (static_cast<EventKind>(event.kind)) {
      case EventKind::complete:
        break;
      case EventKind::received:
      case EventKind::cleared: {
        const LastArrival sent = handler.departure_of(event);
        return {sent.time, sent.npu, true};
      }
      default:  // the start, which comes before all that takes no time then
        return {event.time - Time::from_ns(1), self};
    }
    const Context& context = npu().context();
    const trace::Node& node = npu().node(id);
    const RunningNode& running = npu().running(id);
    if (context.options.replay_only) return {running.start, self};
    Time since = running.start;
    if (node.kind == NodeKind::send) since = running.last.time;
    if (node.is_access() && context.memory.num_servers() > 0)
      since = event.time - std::min(context.memory.access_time(Bytes(node.size)), event.time);
    if (node.kind == NodeKind::collective) since = event.time - std::min(handler.last_step(id), event.time);
    return {since, self};
  }

  bool is_stored(NodeId id) const { return npu().node(id).kind != NodeKind::receive; }
  /// Returns the first node that is no receive; their number if there is none.
  std::size_t first_stored() {
    const auto found = std::ranges::find_if(ends(), [&](NodeId id) { return is_stored(id); });
    return static_cast<std::size_t>(found - ends().begin());
  }
  /// Returns whether the next node ends in the event at hand.
  bool is_in_event() { return is_in_store_ && first_stored() < ends().size(); }

  bool is_in_store_ = false;  // the event at hand has what the NPU has pending for itself
};

/// The order where that of events on different NPUs matters, because they share links or memories. Each event has a
/// history.
class GlobalOrder final : public AstraOrder {
 public:
  explicit GlobalOrder(Execution& npu) : AstraOrder(npu, &histories_) {}

  void admit(const pdes::Event& event) override {
    EventPlace history = npu().context().services.places->take(event);
    if (history.is_known()) histories_.keep(event, std::move(history));
  }

  void add_end(NodeId id, const EventPlace& history) override {
    ends().push_back(id);
    histories_.add_stored_instant(history);
  }
  void add_receive_end(NodeId id, const Meeting& meeting) override {
    ends().push_back(id);
    histories_.add_instant(meeting.place, meeting.is_shared);
  }
  void take_ends(std::vector<NodeId>& over) override { over.push_back(take_end(histories_.begin_instant())); }

  /// A queue that the end of a collective frees is free when the NPU has begun what it begins because of that end.
  void join(Execution& npu, const communicator::Membership& membership, communicator::Join& join, Time now) override {
    join.place = {histories_.next(now, events_of_join), join.turn};
    if (held_) return beside_.push_back({membership, join});
    EventOrder::join(npu, membership, join, now);
  }
  /// If the messages of a collective are not known, the history of its end goes back to this NPU alone.
  void note_end(const EventHandler& handler, const communicator::Completion& completion) override {
    npu().running(completion.node).last_queue = completion.place.last_queue.value_or(RunningNode::no_queue);
    if (npu().node(completion.node).kind != NodeKind::collective) return;
    EventPlace history = completion.place.end;
    if (!history.is_known()) {
      const Time last = completion.time - std::min(handler.last_step(completion.node), completion.time);
      history = first_place().next(last, 0).next(last, 0);
    }
    histories_.keep_known(completion.event, std::move(history));
  }
  /// An access that may end at once is an end that awaits its answer; until then nothing ends that comes later.
  memory::AccessPlace next_access(NodeId id, bool may_end_now, Time now) override {
    memory::AccessPlace place{histories_.next(now), {}};
    if (!may_end_now) return place;
    ends().push_back(id);
    place.end = histories_.add_stored_instant(place.access, true);
    return place;
  }

 private:
  /// An event of the time at hand, and its place.
  struct Ordered {
    EventPlace history, own;
    pdes::Event event;
    bool is_in_store = false;
  };
  /// A collective that the NPU begins while a queue is held.
  struct Beside {
    communicator::Membership membership;
    communicator::Join join;
  };

  /// Returns the place of what the NPU has pending at time 0.
  EventPlace first_place() {
    const auto& positions = npu().context().of_all.positions;
    const NpuId self = npu().npu().id;
    return EventPlace::first_of(positions.empty() ? self : NpuId(positions[self.index()]));
  }

  bool next_end_awaits_answer() const override { return histories_.is_blocked(); }
  void handle_all(EventHandler& handler, std::span<const pdes::Event> all, Time now) override;
  void handle_alone(EventHandler& handler, const pdes::Event& event, Time now);
  void begin(EventPlace history, const pdes::Event& event, bool is_in_store);
  std::vector<Ordered> in_order(std::span<const pdes::Event> all, EventPlace& first);
  EventPlace take_history_of(const pdes::Event& event);
  bool handle(EventHandler& handler, const pdes::Event& event, Time now);
  bool tells_of_access(const pdes::Event& event);
  void defer(std::span<const Ordered> events);
  bool begin_event(EventHandler& handler, const Ordered& one, Time now);
  void hold_queue(const pdes::Event& event);
  void free_queue(Time now);

  Histories histories_;
  // Of the event at hand:
  std::optional<std::uint32_t> held_;  // the place of a queue that is not free (collective::Turn::place_of)
  std::vector<Beside> beside_;         // in the order in which the NPU joins them when the queue is free
};

/// Handles the events of a time. If it is not known whether an access ends at once, what comes after that waits.
void GlobalOrder::handle_all(EventHandler& handler, std::span<const pdes::Event> all, Time now) {
  const bool is_alone = all.size() == 1 && !has_ends();
  if (is_alone && static_cast<EventKind>(all.front().kind) != EventKind::goes_on)
    return handle_alone(handler, all.front(), now);
  const bool is_new_time = !has_ends();
  EventPlace first;  // of what the NPU has had pending since before this time
  std::vector<Ordered> events = in_order(all, first);
  if (is_new_time || first.is_known()) histories_.expect_store(first);
  bool goes_on = false;  // it is part of the event before
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Ordered one = events[i];
    if ((!one.is_in_store || !goes_on) && !begin_event(handler, one, now)) return defer(std::span(events).subspan(i));
    goes_on = one.is_in_store;
    if (handle(handler, one.event, now)) continue;
    const auto others = events.begin() + static_cast<std::ptrdiff_t>(i);
    events.insert(std::find_if_not(others, events.end(), std::mem_fn(&Ordered::is_in_store)), one);
  }
}

/// Handles the only event of a time, while no node ends at this time.
void GlobalOrder::handle_alone(EventHandler& handler, const pdes::Event& event, Time now) {
  EventPlace history = take_history_of(event);
  const bool is_in_store = this->is_in_store(event);
  histories_.expect_store(is_in_store ? history : EventPlace());
  begin(std::move(history), event, is_in_store);
  if (!handle(handler, event, now)) handle(handler, event, now);
}

/// Sorts the events of a time. What the NPU has pending for itself has the history of what has been pending for
/// longest, which is returned in `first`.
std::vector<GlobalOrder::Ordered> GlobalOrder::in_order(std::span<const pdes::Event> all, EventPlace& first) {
  std::vector<Ordered> events;
  for (const pdes::Event& event : all) {
    if (tells_of_access(event)) continue;
    const EventPlace own = take_history_of(event);
    const bool in_store = is_in_store(event);
    if (in_store && (!first.is_known() || own < first)) first = own;
    events.push_back({own, own, event, in_store});
  }
  for (Ordered& one : events)
    if (one.is_in_store) one.history = first;
  std::ranges::stable_sort(events, [](const Ordered& one, const Ordered& other) {
    return std::tie(one.history, one.own) < std::tie(other.history, other.own);
  });
  return events;
}

/// Returns the history of an event that is its own.
EventPlace GlobalOrder::take_history_of(const pdes::Event& event) {
  if (static_cast<EventKind>(event.kind) == EventKind::start) return first_place();
  EventPlace history = histories_.take(event.order);
  const auto& links = npu().context().services.links;
  if (!history.is_known() && links) history = links->take_place(event);
  return history.is_known() ? history : first_place().next(event.time, 0);
}

/// Handles one event. Returns false if it is to come again at this time, after all else that the NPU has pending.
bool GlobalOrder::handle(EventHandler& handler, const pdes::Event& event, Time now) {
  if (const Time until = histories_.take_deferred(event.order); until > Time::zero()) {
    if (until == now) return false;
    pdes::Event later = npu().make_event(until, pdes::Stage::client, npu().npu().lp(), EventKind::wake, event.node);
    later.detail = event.detail;
    histories_.keep(later, histories_.next(now));
    npu().context().services.kernel.schedule(later);
    return true;
  }
  hold_queue(event);
  if (handler.handle_now(event)) handler.begin_ready(now);
  handler.end_event(now);
  free_queue(now);
  return true;
}

/// Takes in an event that says whether an access, which was awaited, ends at this time. Returns false for others.
bool GlobalOrder::tells_of_access(const pdes::Event& event) {
  const NodeId id(event.node);
  const bool goes_on = static_cast<EventKind>(event.kind) == EventKind::goes_on;
  const auto found = std::ranges::find(ends(), id);
  if (!goes_on && (found == ends().end() || static_cast<EventKind>(event.kind) != EventKind::complete)) return false;
  ensure(found != ends().end(), "the end of a node that nobody awaits");
  const EventPlace history = goes_on ? EventPlace() : histories_.take(event.order);
  const auto index = static_cast<std::size_t>(found - ends().begin());
  if (histories_.confirm_instant(index, history)) return true;
  ends().erase(found);
  histories_.replace_instant(index, history);
  if (history.is_known()) ends().push_back(id);
  return true;
}

/// Keeps events for when it is known whether an access ends at this time.
void GlobalOrder::defer(std::span<const Ordered> events) {
  for (const Ordered& one : events) {
    histories_.keep(one.event, one.own);
    keep_again(one.event);
  }
}

/// Ends what takes no time and comes before an event, and begins this event. Returns false if such an end is awaited.
bool GlobalOrder::begin_event(EventHandler& handler, const Ordered& one, Time now) {
  for (; histories_.has_instant_before(one.history); handler.begin_ready(now)) {
    if (histories_.is_blocked()) return false;
    npu().end_instant_nodes(now);
  }
  begin(one.history, one.event, one.is_in_store);
  return true;
}

/// Begins an event. What the NPU has pending for itself has been expected.
void GlobalOrder::begin(EventPlace history, const pdes::Event& event, bool is_in_store) {
  const auto kind = static_cast<EventKind>(event.kind);
  const bool is_from_elsewhere = kind == EventKind::arrived || kind == EventKind::received;
  if (is_in_store)
    histories_.begin_store();
  else
    histories_.begin(std::move(history), is_from_elsewhere ? Histories::of_receiver : 0);
}

/// Takes note that an event of the NPU ends a collective of a host, whose last queue is not free before `free_queue`.
void GlobalOrder::hold_queue(const pdes::Event& event) {
  const bool ends_node = static_cast<EventKind>(event.kind) == EventKind::complete;
  if (npu().context().services.links != nullptr || !ends_node) return;
  if (npu().node(NodeId(event.node)).kind != NodeKind::collective) return;
  const std::uint32_t last = npu().running(NodeId(event.node)).last_queue;
  if (last != RunningNode::no_queue) held_ = last;
}

/// Frees the queue, since the NPU has begun what it begins because of the event. Then joins the collectives that waited
/// for this, of which the first one takes the queue.
void GlobalOrder::free_queue(Time now) {
  const auto held = std::exchange(held_, {});
  if (beside_.empty()) return;
  communicator::JoinPlace& first = beside_.front().join.place;
  first.held_queue = held;
  first.freed = histories_.next(now, events_of_join);
  for (Beside& one : beside_) EventOrder::join(npu(), one.membership, one.join, now);
  beside_.clear();
}

}  // namespace

std::unique_ptr<EventOrder> make_event_order(Execution& npu) {
  if (!npu.context().options.one_by_one) return std::make_unique<EventOrder>();
  if (npu.context().services.places == nullptr) return std::make_unique<LocalOrder>(npu);
  return std::make_unique<GlobalOrder>(npu);
}

}  // namespace orrery::npu
