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
/// posts.
struct Horizon {
  Reach sends;
  Reach calls;
};

/// The whole contract between the kernel and what it simulates on one rank. The LPs of a rank live behind it.
class Model {
 public:
  virtual ~Model() = default;

  /// Handles one event of an LP of this rank. May schedule events later than `event.time`, or at `event.time` for a
  /// later stage, and post messages.
  virtual void handle(const Event& event) = 0;

  /// All events of stage `npu` of this time have been handled on this rank.
  virtual void settle(Time now) = 0;

  /// An event from another rank has entered the pending set; it is handled when its time has come.
  virtual void delivered(const Event& event) = 0;

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
