#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/event_place.hpp"
#include "orrery/base/last_arrival.hpp"
#include "orrery/communicator/member_side.hpp"
#include "orrery/memory/memory_server.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::npu {

class Execution;

/// When a message that an NPU gives to the links leaves (docs/model.md, 2).
enum class Leaving : std::uint8_t {
  at_once,   ///< part of the event at hand
  in_event,  ///< separate event of this time, which is scheduled only now
};

/// A message that has come, and the node that asks for it.
struct Meeting {
  EventPlace place;        ///< place of the event in which the node proceeds
  bool is_shared = false;  ///< the message is this event, which also ends the send
};

/// A wait of a collective over the links.
struct StepWait {
  NodeId node;
  std::uint64_t step = 0;         ///< network::packed
  Time until;                     ///< later than now
  Time reduction = Time::zero();  ///< time at which the step schedules its reduction; at most now: it reduces nothing
  bool is_for_early_message = false;  ///< the step takes a message that came before it
};

/// The places, among simultaneous events, of what the event at hand of an NPU brings about. This base class is the
/// natural order, where all places are unknown: it only sends and schedules.
class EventPlaces {
 public:
  explicit EventPlaces(bool are_known = false) : are_known_(are_known) {}
  virtual ~EventPlaces() = default;

  bool are_known() const { return are_known_; }
  /// Returns the place of what the event at hand schedules now. It may schedule `count` things at once, of which this
  /// is the first.
  EventPlace next(Time now, std::uint32_t count = 1) { return are_known_ ? next_known(now, count) : EventPlace(); }
  /// Returns the place of what hands a message of this NPU to its first link.
  EventPlace next_sending(Time now, Leaving leaving) {
    return are_known_ ? next_known_sending(now, leaving) : EventPlace();
  }
  /// Keeps the place of an event that the NPU has scheduled for itself.
  void keep(const pdes::Event& event, EventPlace place) {
    if (are_known_) keep_known(event.order, std::move(place));
  }

  /// Sends an event to another NPU.
  virtual void send(Execution& npu, Rank to, const pdes::Event& event, const EventPlace& place);
  /// Schedules the event that ends a wait.
  virtual void wait(Execution& npu, const StepWait& wait, Time now);

  /// Keeps, for a node that may have to wait for a message, the place of what it does if the message is there first.
  virtual void post(NodeId, Time /*now*/) {}
  /// Forgets it: the message comes later.
  virtual void forget_posted(NodeId) {}
  /// Returns where a node proceeds that was posted and whose message is there.
  virtual Meeting meet(NodeId, const pdes::Event& /*message*/, Time /*now*/) { return {}; }
  /// Returns the place of the data of a send that was posted and whose clear to send is there.
  virtual EventPlace next_cleared(NodeId, const pdes::Event& /*clearance*/, Time /*now*/) { return {}; }

  virtual void serialize(Archive&) {}

 private:
  virtual EventPlace next_known(Time, std::uint32_t) { return {}; }
  virtual EventPlace next_known_sending(Time, Leaving) { return {}; }
  virtual void keep_known(std::uint64_t /*event*/, EventPlace) {}

  bool are_known_;
};

/// What an order of events asks of its NPU.
class EventHandler {
 public:
  /// Handles an event. Returns whether nodes may have become ready.
  virtual bool handle_now(const pdes::Event& event) = 0;
  /// Begins the nodes that are ready, as far as resources are free.
  virtual void begin_ready(Time now) = 0;
  /// Ends an event: the NPU has begun all that it begins because of it.
  virtual void end_event(Time now) = 0;
  /// Returns who sent the message of an event, and when.
  virtual LastArrival departure_of(const pdes::Event& event) const = 0;
  /// Returns what passes from the last message of a node's collective to its end.
  virtual Time last_step(NodeId collective) const = 0;

 protected:
  ~EventHandler() = default;
};

/// The order in which an NPU handles simultaneous events, and in which nodes begin and end because of them. This base
/// class is the natural order: each event is handled when the kernel hands it over, nodes begin when all events of the
/// time are handled, and nodes that take no time end together.
class EventOrder {
 public:
  EventOrder() = default;
  EventOrder(const EventOrder&) = delete;
  EventOrder& operator=(const EventOrder&) = delete;
  virtual ~EventOrder() = default;

  EventPlaces& places() { return *places_; }

  // ---- Events ----
  /// Takes in the place of an event that another logical process has sent.
  virtual void admit(const pdes::Event&) {}
  /// Keeps an event for `handle_kept`. Returns false if the NPU is to handle it now.
  bool keep(const pdes::Event& event) { return keeps_events_ && keep_event(event); }
  /// Handles the events that are kept, and begins nodes after each of them.
  void handle_kept(EventHandler& npu, Time now) {
    if (keeps_events_) handle_in_order(npu, now);
  }
  /// Returns the events that are kept.
  virtual std::span<const pdes::Event> kept() const { return {}; }
  /// Returns whether one node begins at a time, that with the lowest id; otherwise resources take nodes in turn.
  bool begins_lowest_first() const { return keeps_events_; }
  bool keeps_events() const { return keeps_events_; }

  // ---- Nodes that end at the present time ----
  bool has_ends() const { return !ends_.empty(); }
  /// Returns whether the next end waits for the answer of a memory.
  bool awaits_answer() const { return keeps_events_ && next_end_awaits_answer(); }
  virtual void add_end(NodeId id, const EventPlace&) { ends_.push_back(id); }
  /// Adds the end of a receive whose message is there.
  virtual void add_receive_end(NodeId id, const Meeting&) { ends_.push_back(id); }
  /// Moves the nodes that end next to `over`, which is empty. There must be some, and the next one awaits no answer.
  virtual void take_ends(std::vector<NodeId>& over) { ends_.swap(over); }

  // ---- Requests to other logical processes ----
  /// Joins a collective that its host carries out.
  virtual void join(Execution& npu, const communicator::Membership& membership, communicator::Join& join, Time now);
  /// Takes note that the end of a collective or an access has become known.
  virtual void note_end(const EventHandler&, const communicator::Completion&) {}
  /// Returns the place of an access to a shared memory. `may_end_now`: the access may take no time.
  virtual memory::AccessPlace next_access(NodeId, bool /*may_end_now*/, Time /*now*/) { return {}; }

  void serialize_ends(Archive& archive) { archive(ends_); }
  virtual void serialize_kept(Archive&) {}

 protected:
  /// Makes an order that keeps events. `places`: they outlive it; null: all places are unknown.
  explicit EventOrder(EventPlaces* places) : places_(places != nullptr ? places : &natural_), keeps_events_(true) {}

  std::vector<NodeId>& ends() { return ends_; }

 private:
  virtual bool keep_event(const pdes::Event&) { return false; }
  virtual void handle_in_order(EventHandler&, Time) {}
  virtual bool next_end_awaits_answer() const { return false; }

  EventPlaces natural_;
  EventPlaces* places_ = &natural_;
  std::vector<NodeId> ends_;
  bool keeps_events_ = false;
};

/// Returns the order of an NPU's events (docs/model.md, 2). The NPU outlives it.
std::unique_ptr<EventOrder> make_event_order(Execution& npu);

}  // namespace orrery::npu
