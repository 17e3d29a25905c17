#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/event_place.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/collective/message_program.hpp"

namespace orrery::collective {

/// A queue that is free when a member has begun what it begins in the event in which it joins a collective.
struct HeldQueue {
  std::optional<std::uint32_t> queue;  ///< MessageProgram::place_of_queue; none: all are free
  EventPlace freed;                    ///< place of the first event that the member schedules when the queue is free
};

/// When the members of a collective begin, and what its messages take (docs/model.md, 2).
struct MessageTimes {
  std::vector<Time> arrivals;  ///< [members]
  /// [members] of the first event that a member schedules when it begins. The others that it schedules then follow
  /// beside it.
  std::vector<EventPlace> histories;
  /// [members] of the queue that is free only when a member has begun; empty: all queues are free.
  std::vector<HeldQueue> held = {};
  std::function<Time(std::uint32_t from, std::uint32_t to, Bytes size)> delay;  ///< delay of a message between members
  Time endpoint_delay;
  bool rendezvous = false;
};

/// When members end, and the histories of the events with which they do.
struct MemberEnds {
  std::vector<Time> times;            ///< [members]
  std::vector<EventPlace> histories;  ///< [members]
  std::vector<std::uint32_t> queues;  ///< [members] MemberRun::last_queue
};

/// Returns the ends of members by sending all messages of the collective one by one. `programs`: [members], which
/// differ where members take their queues in different turns. Returns nothing if members then wait for each other or
/// send each other more messages of a step than it has, or if the programs have operations or switches that it does not
/// know, or more than `most_messages` messages. O(messages * log members).
std::optional<MemberEnds> member_ends(std::span<const std::shared_ptr<const MessageProgram>> programs,
                                      const MessageTimes& times, std::uint64_t most_messages);

}  // namespace orrery::collective
