#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "orrery/base/ids.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::pdes {

/// How far ahead a rank's model can see of one kind of thing that other ranks notice.
struct Reach {
  /// What is under way here, and known to end, leads to no such thing before this time.
  Time output = Time::max();
  /// What waits here for something that is not known yet: from that something, be it an event of this rank or a
  /// message, to such a thing, at least this. max() if nothing waits.
  Time reaction = Time::max();
};

/// How far ahead a rank's model can see: events that NPUs here send to NPUs on other ranks; calls of servers there, and
/// posts; calls of servers here that answer NPUs of other ranks than the caller's, or call servers there.
struct Horizon {
  Reach sends;
  Reach calls;
  Reach relays = {};
};

/// What an NPU may be given an event by that is not known yet.
struct Awaited {
  bool here = false;     ///< an NPU of its own rank: sends it something, or joins what it has joined
  bool sends = false;    ///< an NPU of another rank sends it an event
  bool replies = false;  ///< a server answers, or posts bring about a reply

  bool anything() const { return here || sends || replies; }
  /// NPUs of its rank may await what they like.
  bool may_send() const { return here || sends; }
  bool may_reply() const { return here || replies; }
};

/// The whole contract between the kernel and what it simulates on one rank. The LPs of a rank live behind it.
class Model {
 public:
  virtual ~Model() = default;

  /// Handles one event of an LP of this rank. May schedule events later than `event.time`, or at `event.time` for a
  /// later stage, and post messages.
  virtual void handle(const Event& event) = 0;

  /// The NPUs that have handled events since the last call have handled all theirs of this time. Times grow for each
  /// NPU, not from call to call: an NPU that awaits nothing may be ahead of others.
  virtual void settle(Time now) = 0;

  /// An event of `Kernel::send` has come for an NPU here. True: it shall be handled at its time; the model may have
  /// changed what it says, not its time and order. False: the model keeps it, because the NPU does not await it yet;
  /// then its time may be past, and the order in which events of different sources come must not matter.
  virtual bool admit(Event& event) = 0;

  /// An event of `Kernel::send` has come from another rank with bytes of the model beside it, which are gone after the
  /// call: the model keeps them and notes where in `event.detail`. For an NPU `admit` follows.
  virtual void unpack(Event& event, std::span<const std::byte> bytes);

  /// What may make an event for this NPU before its next one and is not known here yet. Nothing: that event is handled
  /// whatever others do.
  virtual Awaited awaits(LpId npu) const = 0;

  /// What `Kernel::linger` was asked for; `settle` follows.
  virtual void proceed(LpId npu) = 0;

  /// A message of `Kernel::post`, in the order in which its rank sent it. It is no event: what it says must not depend
  /// on the order in which messages of different ranks come. It may schedule events no earlier than the time that the
  /// sender's promise covers plus the service delay.
  virtual void receive(Rank from, std::span<const std::byte> message) = 0;

  /// Called when a promise is due; amortised O(1) per event is expected.
  virtual Horizon horizon() = 0;

  /// Posts that have come already will, together with others that are still to come, bring about events for NPUs of
  /// rank `to` (which may be this one), none before this time unless a post that is to come is earlier still. max() if
  /// there are none. See Neighbour::reply_delay.
  virtual Time pending_reply(Rank to) const = 0;

  /// One line about where this rank stands, for the watchdog.
  virtual std::string status() const = 0;
};

}  // namespace orrery::pdes
