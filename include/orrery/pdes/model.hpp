#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "orrery/base/ids.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::pdes {

/// How far ahead a rank's model can see of one kind of action that other ranks notice.
struct LookaheadBound {
  /// What is under way here, and is known to end, leads to no such action before this time.
  Time output = Time::max();
  /// What waits here for something that is not known yet leads to no such action before this delay after that
  /// something, be it an event of this rank or a message. max() if nothing waits.
  Time reaction = Time::max();
};

/// How far ahead a rank's model can see.
struct LookaheadBounds {
  LookaheadBound sends;        ///< events that clients here send to clients on other ranks
  LookaheadBound calls;        ///< calls of servers on other ranks, and posts
  LookaheadBound relays = {};  ///< calls of servers here that answer clients of other ranks than the caller's, or that
                               ///< call servers there
};

/// By what a client may be given an event that is not known yet.
struct Awaited {
  bool here = false;     ///< client of its own rank, which sends it something or joins what it has joined
  bool sends = false;    ///< client of another rank that sends it an event
  bool replies = false;  ///< server that answers, or posts that bring about a reply

  bool anything() const { return here || sends || replies; }
  /// Returns whether an event of another rank's client matters. Other clients of its rank may await whatever they like.
  bool may_send() const { return here || sends; }
  /// Returns whether an answer or a reply matters, likewise.
  bool may_reply() const { return here || replies; }
};

/// How far an event of a server, or what follows from it at servers, may lead to events.
enum class Scope : std::uint8_t {
  anywhere,
  rank,  ///< LPs of its own rank only
  cell,  ///< LPs of its own cell only; see Options::cell_of
};

/// The whole contract between the kernel and what it simulates on one rank. The LPs of a rank stand behind it.
class Model {
 public:
  virtual ~Model() = default;

  /// Handles one event of an LP of this rank. May schedule events later than `event.time`, or at `event.time` for a
  /// later stage, and may post messages.
  virtual void handle(const Event& event) = 0;

  /// Names an event of a server here that probably comes soon, so that its state is on its way from memory.
  virtual void prefetch(const Event&) const {}

  /// Returns how far an event of a server here reaches, as far as it is known. The kernel asks once, when it is given
  /// the event.
  virtual Scope scope(const Event&) const { return Scope::anywhere; }

  /// Ends a time of clients: those that have handled events since the last call have handled all theirs of this time.
  /// Times grow for each client, not from call to call, because a client or a cell may be ahead of others.
  /// Or ends a time of the servers here, or of a cell, which have handled all events of this time. May schedule later
  /// events.
  virtual void settle(Time now, Stage stage) = 0;

  /// Takes note of an event of Scheduler::send for a client here. Returns true if the kernel shall handle it at its
  /// time; the model may have changed everything in it but its time and order. Returns false if the model keeps it,
  /// because the client does not await it yet. Its time may then be past, and the order in which events of different
  /// sources come must not matter.
  virtual bool admit(Event& event) = 0;

  /// Takes the bytes that came beside an event of Scheduler::send from another rank. They are gone after the call, so
  /// the model keeps them and notes where in `event.detail`. For a client `admit` follows.
  virtual void unpack(Event& event, std::span<const std::byte> bytes);

  /// Returns what may make an event for this client before its next one and is not known here yet. If this is nothing,
  /// the kernel handles the next event whatever others do.
  virtual Awaited awaits(LpId client) const = 0;

  /// Goes on where the client asked for Scheduler::wait_until_certain. `settle` follows.
  virtual void proceed(LpId client) = 0;

  /// Takes in a message of Scheduler::post. Messages of one rank come in the order in which it sent them. A post is no
  /// event: what it says must not depend on the order in which messages of different ranks come. It may schedule events
  /// no earlier than the time that the sender's promise covers plus the service delay.
  virtual void receive(Rank from, std::span<const std::byte> message) = 0;

  /// Returns how far ahead this rank sees. The kernel asks when a promise is due and expects O(1) per event, amortised.
  virtual LookaheadBounds lookahead() = 0;
  /// Returns how far ahead this rank sees of those calls of servers by clients of a cell that lead to events beyond the
  /// cell. The kernel asks if there are several cells and servers relay.
  virtual LookaheadBound lookahead_of_cell(std::uint32_t) { return {Time::zero(), Time::zero()}; }

  /// Returns when the posts that have come already will, together with others that are still to come, bring about an
  /// event for clients of rank `to` (which may be this one) at the earliest, unless a post that is to come is earlier
  /// still. max() if there are none. See Neighbour::reply_delay.
  virtual Time pending_reply(Rank to) const = 0;

  /// Returns one line about where this rank stands, for the watchdog.
  virtual std::string status() const = 0;
};

}  // namespace orrery::pdes
