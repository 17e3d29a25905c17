#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/model.hpp"

namespace orrery::pdes {

/// What a logical process may ask of the kernel of its rank. Tests of a logical process bring their own scheduler.
class Scheduler {
 public:
  /// Schedules an event for an LP of this rank. `event.time` must lie in the future of the LP; anything else throws
  /// Error (internal).
  virtual void schedule(const Event& event) = 0;
  /// Sends an event to an LP of this rank or of another one. Its time is at least the channel's event delay from now
  /// (from a client to a client), or the service delay after the request (from a server; to another server the relay
  /// delay). For an event to a client the receiving rank calls Model::admit. `more` are bytes that go with the event to
  /// another rank, for Model::unpack.
  virtual void send(Rank to, Event event, std::span<const std::byte> more = {}) = 0;
  /// Schedules an event that the model kept in `admit`. Its time must lie in the future of the LP.
  virtual void resume(const Event& event) = 0;
  /// Returns whether everything is known that can come at this time, or before it, for a client of this rank that
  /// awaits `awaited`.
  virtual bool is_certain(Time time, Awaited awaited) const = 0;
  /// Counts an event of a client that the client handles at once, without having scheduled it. Returns whether it may:
  /// if no event is pending for the client, it is allowed to be ahead of others, and no stop is near. The client must
  /// await nothing, and the event must come after the last one that it has handled.
  virtual bool advance(LpId client, Time time) = 0;
  /// Asks the kernel to call Model::proceed for a client as soon as it awaits nothing, or its time is certain. A client
  /// asks for this when it is ahead of what is certain and cannot end the time of its last event before it knows more.
  /// This is no event of the model and does not count as one.
  virtual void wait_until_certain(LpId client) = 0;
  /// Sends bytes to another rank's Model::receive with the next batch. The rank's promise of requests covers it.
  virtual void post(Rank to, std::span<const std::byte> message) = 0;

  /// Calls visit(event) for each event that waits for a server of this rank, in no particular order. O(events).
  virtual void visit_server_events(const std::function<void(const Event&)>&) const {}
  /// Takes events that wait for servers of this rank back and returns them, in no particular order. The model knows
  /// what becomes of them. It sends them again, perhaps with later times, before anything else can happen to these
  /// servers. When the kernel has stopped at a time, it calls give_back(time) of the last call: the model has handled
  /// what is not later, and sends the others. Returns none if all events are recorded. O(events).
  virtual std::vector<Event> withdraw(const std::function<bool(const Event&)>&, std::function<void(Time)>) {
    return {};
  }

  /// Returns the time of the event that is being handled.
  virtual Time now() const = 0;
  /// Returns the number of events on the longest chain of causes that has reached this LP.
  virtual std::uint32_t depth(LpId lp) const = 0;
  /// Records that a post, or a kept event, with such a chain was a cause for this LP.
  virtual void raise_depth(LpId lp, std::uint32_t depth) = 0;

 protected:
  ~Scheduler() = default;
};

}  // namespace orrery::pdes
